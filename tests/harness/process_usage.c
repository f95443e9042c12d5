/* SPDX-License-Identifier: MIT */
#include "process_usage.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"

#define KERNEL_PF_EXITING 4 /* bit in the flags of a thread in /proc: the thread is ending */

bool fd_readable(int fd)
{
	return fd_readable_within(fd, 0);
}

bool fd_readable_within(int fd, uint64_t timeout_ns)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	struct timespec timeout = { (time_t)(timeout_ns / SEC), (long)(timeout_ns % SEC) };
	int ready;

	do
		ready = ppoll(&poll_fd, 1, &timeout, NULL);
	while (ready < 0 && errno == EINTR);
	expect(ready >= 0);
	return ready == 1;
}

int edge_open(int fd)
{
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };

	expect(epoll_fd >= 0);
	expect_eq(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event), 0);
	return epoll_fd;
}

bool edge_seen(int epoll_fd, uint64_t timeout_ns)
{
	struct epoll_event event;
	int count;

	do
		count = epoll_wait(epoll_fd, &event, 1, (int)(timeout_ns / MS));
	while (count < 0 && errno == EINTR);
	expect(count >= 0);
	return count == 1;
}

unsigned process_fd_count(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	expect(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count - 1; /* without the directory's own */
}

rlim_t process_limit_fds(rlim_t limit)
{
	struct rlimit now;
	rlim_t before;

	expect_eq(getrlimit(RLIMIT_NOFILE, &now), 0);
	before = now.rlim_cur;
	now.rlim_cur = limit;
	expect_eq(setrlimit(RLIMIT_NOFILE, &now), 0);
	return before;
}

static bool file_first_line(const char *path, char *line, int size)
{
	FILE *file = fopen(path, "re");
	bool found = file && fgets(line, size, file);

	if (file)
		fclose(file);
	line[found ? strcspn(line, "\n") : 0] = '\0';
	return found;
}

/* The place-th field after the name in the thread's stat file; 0 is the state. */
static bool thread_stat(pid_t tid, unsigned place, char *field, size_t size)
{
	char path[64];
	char line[512];
	const char *at;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	if (!file_first_line(path, line, sizeof(line)))
		return false;
	at = strrchr(line, ')');
	for (unsigned i = 0; at && i <= place; i++)
		at = strchr(at + 1, ' ');
	if (at)
		snprintf(field, size, "%.*s", (int)strcspn(at + 1, " "), at + 1);
	return at;
}

/* Ended or about to, and not yet removed. */
static bool thread_is_leaving(pid_t tid)
{
	char flags[32];

	return !thread_stat(tid, 6, flags, sizeof(flags)) ||
	       strtoul(flags, NULL, 10) & KERNEL_PF_EXITING;
}

unsigned process_thread_count(void)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned count = 0;

	expect(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		count += entry->d_name[0] != '.' && !thread_is_leaving(atoi(entry->d_name));
	closedir(dir);
	return count;
}

static void *store_tid(void *tid)
{
	*(pid_t *)tid = gettid();
	return NULL;
}

/* Under an emulator a thread may run on for a moment after its join. */
unsigned process_threads_at_rest(void)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;
	pthread_t thread;
	pid_t tid;

	thread_start(&thread, store_tid, &tid);
	thread_join(thread);
	while (!thread_is_leaving(tid) && monotonic_ns() < until_ns)
		sleep_ns(MS);
	expect(thread_is_leaving(tid));
	return process_thread_count();
}

unsigned process_mapping_count(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned count = 0;

	expect(maps);
	for (int c; (c = getc(maps)) != EOF;)
		count += c == '\n';
	fclose(maps);
	return count;
}

uint64_t process_rss_bytes(void)
{
	return thread_status(getpid(), "VmRSS:", 10) * 1024;
}

/*
 * 1 MB, or 16 MB under a sanitizer, which allocates shadow memory at any time (ThreadSanitizer 5 MB
 * at once). A slot lost for each of a million timers would be 64 MB.
 */
void process_rss_is_still(uint64_t before_bytes)
{
	uint64_t noise_bytes = UINT64_C(1) << (sanitized() ? 24 : 20);

	expect_cmp(process_rss_bytes(), <, before_bytes + noise_bytes);
}

void process_settles_at_threads(unsigned count)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;

	while (process_thread_count() != count && monotonic_ns() < until_ns)
		sleep_ns(MS);
	expect_eq(process_thread_count(), count);
}

static bool thread_is_named(const char *tid, const char *name)
{
	char path[300];
	char comm[32];

	snprintf(path, sizeof(path), "/proc/self/task/%s/comm", tid);
	return file_first_line(path, comm, sizeof(comm)) && !strcmp(comm, name);
}

pid_t thread_find(const char *name)
{
	DIR *dir = opendir("/proc/self/task");
	pid_t found = 0;

	expect(dir);
	for (struct dirent *entry; !found && (entry = readdir(dir));)
		if (thread_is_named(entry->d_name, name))
			found = (pid_t)atoi(entry->d_name);
	closedir(dir);
	return found;
}

uint64_t thread_status(pid_t tid, const char *key, int base)
{
	char line[256];
	uint64_t value = 0;
	bool found = false;
	FILE *file;

	snprintf(line, sizeof(line), "/proc/self/task/%d/status", (int)tid);
	file = fopen(line, "re");
	expect(file);
	while (!found && fgets(line, sizeof(line), file)) {
		found = !strncmp(line, key, strlen(key));
		if (found)
			value = strtoull(line + strlen(key), NULL, base);
	}
	fclose(file);
	expect(found);
	return value;
}

/* The file `syscall` then begins with a number, and is "running" otherwise. */
bool thread_is_blocked(pid_t tid)
{
	char path[64];
	char line[256];

	if (!thread_stat(tid, 0, line, sizeof(line)) || line[0] != 'S')
		return false;
	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)tid);
	return !file_first_line(path, line, sizeof(line)) || (line[0] >= '0' && line[0] <= '9');
}

bool threads_are_blocked(const char *name)
{
	DIR *dir = opendir("/proc/self/task");
	bool blocked = true;

	expect(dir);
	for (struct dirent *entry; blocked && (entry = readdir(dir));)
		if (thread_is_named(entry->d_name, name))
			blocked = thread_is_blocked(atoi(entry->d_name));
	closedir(dir);
	return blocked;
}

void thread_blocks(pid_t tid)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;

	while (!thread_is_blocked(tid)) {
		expect(monotonic_ns() < until_ns);
		sleep_ns(100 * US);
	}
}

void thread_begins_and_blocks(const atomic_int *tid)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;

	while (atomic_load(tid) == 0) {
		expect(monotonic_ns() < until_ns);
		sleep_ns(100 * US);
	}
	thread_blocks(atomic_load(tid));
}

void child_ends_well(pid_t child)
{
	int status;
	pid_t ended;

	do
		ended = waitpid(child, &status, 0);
	while (ended < 0 && errno == EINTR);
	expect_eq(ended, child);
	expect(WIFEXITED(status));
	expect_eq(WEXITSTATUS(status), 0);
}
