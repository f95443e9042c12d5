/* SPDX-License-Identifier: MIT */
/*
 * Reads what the kernel tells of a thread. See thread.h. A file that may not be read leaves its
 * part of the answer empty: wchan and syscall want more rights than the rest.
 */
#include "thread.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

/* The system calls in which threads sleep. Others are shown by their numbers. */
static const struct {
	long number;
	const char *name;
} sleeping_calls[] = {
#ifdef SYS_poll
	{ SYS_poll, "poll" },
	{ SYS_select, "select" },
	{ SYS_epoll_wait, "epoll_wait" },
	{ SYS_open, "open" },
	{ SYS_pause, "pause" },
#endif
	{ SYS_ppoll, "ppoll" },
	{ SYS_pselect6, "pselect6" },
	{ SYS_epoll_pwait, "epoll_pwait" },
	{ SYS_epoll_pwait2, "epoll_pwait2" },
	{ SYS_io_uring_enter, "io_uring_enter" },
	{ SYS_nanosleep, "nanosleep" },
	{ SYS_clock_nanosleep, "clock_nanosleep" },
	{ SYS_futex, "futex" },
	{ SYS_read, "read" },
	{ SYS_pread64, "pread64" },
	{ SYS_readv, "readv" },
	{ SYS_write, "write" },
	{ SYS_pwrite64, "pwrite64" },
	{ SYS_writev, "writev" },
	{ SYS_fsync, "fsync" },
	{ SYS_fdatasync, "fdatasync" },
	{ SYS_openat, "openat" },
	{ SYS_flock, "flock" },
	{ SYS_fcntl, "fcntl" },
	{ SYS_ioctl, "ioctl" },
	{ SYS_connect, "connect" },
	{ SYS_accept, "accept" },
	{ SYS_accept4, "accept4" },
	{ SYS_recvfrom, "recvfrom" },
	{ SYS_recvmsg, "recvmsg" },
	{ SYS_sendto, "sendto" },
	{ SYS_sendmsg, "sendmsg" },
	{ SYS_wait4, "wait4" },
	{ SYS_waitid, "waitid" },
	{ SYS_rt_sigtimedwait, "rt_sigtimedwait" },
	{ SYS_rt_sigsuspend, "rt_sigsuspend" },
};

bool proc_read(int folder, const char *path, char *text, size_t bytes)
{
	int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, bytes - 1);

	if (fd >= 0)
		(void)close(fd);
	text[length < 0 ? 0 : length] = 0;
	return length > 0;
}

DIR *proc_folder(int folder, const char *path)
{
	int fd = openat(folder, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *opened = fd < 0 ? NULL : fdopendir(fd);
	int error = errno;

	if (!opened && fd >= 0)
		(void)close(fd);
	errno = error;
	return opened;
}

uint32_t proc_inner_number(const char *status, const char *name, uint32_t without)
{
	const char *line = strstr(status, name), *number;

	if (!line)
		return without;
	number = line + 1 + strcspn(line + 1, "\n");
	while (isdigit((unsigned char)number[-1]))
		number--;
	return (uint32_t)strtoul(number, NULL, 10);
}

static bool task_read(int proc, const char *folder, const char *name, char *text, size_t bytes)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "task/%.20s/%s", folder, name);
	return proc_read(proc, path, text, bytes);
}

/* Returns whether task/FOLDER is the thread that its process calls `tid`. Stores its `status`. */
static bool task_is(int proc, const char *folder, int tid, char status[PROC_STATUS_BYTES])
{
	return task_read(proc, folder, "status", status, PROC_STATUS_BYTES) &&
	       proc_inner_number(status, "\nNSpid:", (uint32_t)atoi(folder)) == (uint32_t)tid;
}

/* Finds the folder of the thread. In another PID namespace it has another name than `tid`. */
static bool task_find(int proc, int tid, char folder[24], char status[PROC_STATUS_BYTES])
{
	struct dirent *entry;
	bool found = false;
	DIR *tasks;

	(void)snprintf(folder, 24, "%d", tid);
	if (task_is(proc, folder, tid, status))
		return true;
	tasks = proc_folder(proc, "task");
	while (tasks && !found && (entry = readdir(tasks))) {
		(void)snprintf(folder, 24, "%.20s", entry->d_name);
		found = isdigit((unsigned char)*folder) && task_is(proc, folder, tid, status);
	}
	if (tasks)
		(void)closedir(tasks);
	return found;
}

/* Copies the first line of `text`, in printable ASCII. */
static void copy_line(char to[THREAD_TEXT_BYTES], const char *text)
{
	size_t length = strcspn(text, "\n");

	(void)snprintf(to, THREAD_TEXT_BYTES, "%.*s", (int)length, text);
	for (; *to; to++)
		if (*to < ' ' || *to > '~')
			*to = '?';
}

static void read_syscall(const char *text, struct thread *thread)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (end == text || number < 0) /* "running", or stopped outside a system call */
		return;
	(void)snprintf(thread->syscall, sizeof(thread->syscall), "system call %ld", number);
	for (size_t i = 0; i < sizeof(sleeping_calls) / sizeof(sleeping_calls[0]); i++)
		if (sleeping_calls[i].number == number)
			(void)snprintf(thread->syscall, sizeof(thread->syscall), "%s",
			               sleeping_calls[i].name);
}

bool thread_look(int proc, int tid, struct thread *ret_thread)
{
	uint64_t user_ticks, system_ticks, ran_ns;
	char text[1024], folder[24], status[PROC_STATUS_BYTES];
	const char *name_end, *sleeps;

	*ret_thread = (struct thread){ .tid = tid };
	if (!task_find(proc, tid, folder, status) ||
	    !task_read(proc, folder, "stat", text, sizeof(text)))
		return false;
	ret_thread->at_ns = clock_monotonic_ns();
	name_end = strrchr(text, ')'); /* the name itself may contain a ')' */
	if (!name_end ||
	    sscanf(name_end, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64,
	           &ret_thread->state, &user_ticks, &system_ticks) != 3)
		return false;
	ret_thread->ran_ns =
		(user_ticks + system_ticks) * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
	sleeps = strstr(status, "\nvoluntary_ctxt_switches:");
	if (sleeps)
		ret_thread->sleeps = strtoull(strchr(sleeps, ':') + 1, NULL, 10);
	if (task_read(proc, folder, "comm", text, sizeof(text)))
		copy_line(ret_thread->name, text);
	/* The time in stat is in ticks of 10 ms. A kernel that keeps no exact one says 0 here. */
	if (task_read(proc, folder, "schedstat", text, sizeof(text)) &&
	    sscanf(text, "%" SCNu64 " %" SCNu64, &ran_ns, &ret_thread->waited_ns) == 2 &&
	    ran_ns > 0) {
		ret_thread->ran_ns = ran_ns;
		ret_thread->has_waited_ns = true;
	}
	if (task_read(proc, folder, "wchan", text, sizeof(text)) && strcmp(text, "0") != 0) {
		text[strcspn(text, ".")] =
			0; /* without what the compiler appends, as .constprop.0 */
		copy_line(ret_thread->wchan, text);
	}
	if (task_read(proc, folder, "syscall", text, sizeof(text)))
		read_syscall(text, ret_thread);
	return true;
}
