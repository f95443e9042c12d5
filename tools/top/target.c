/* SPDX-License-Identifier: MIT */
/*
 * Finds the boards of a process. See target.h. A board is a memfd with the right name, sealed
 * against shrinking. Without the seal the memfd could shrink, and a read beyond its end would kill
 * this tool. The board must have the magic and the layout of this version. The watched process
 * itself must write the board. A forked process may have inherited the board of its parent. Tested
 * by tests/tools/test_top.py.
 */
#define _GNU_SOURCE
#include "target.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

/* the flag in /proc/PID/stat of a process that is ending; it is PF_EXITING of the kernel */
#define FLAG_EXITING 4u

/* time between two searches for new hubs, each of which reads all descriptors of the process */
#define FIND_EVERY_NS (3 * NS_PER_S)

#define MEMFD_LINK "/memfd:" BOARD_NAME " (deleted)"

/* ---- files of /proc ---- */

void make_printable(char *text, size_t bytes)
{
	text[bytes - 1] = 0;
	for (char *c = text; *c; c++)
		if (!isascii(*c) || !isprint(*c))
			*c = '?';
}

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

/* ---- the target ---- */

/* reasons why there is no hub to watch */
static const char no_hub[] = "has no hub opened with TIMERHUB_OBSERVABLE,"
			     " and no loop with TIMERHUB_LOOP_OBSERVABLE";
static const char foreign[] = "has a memfd named " BOARD_NAME " that is not a hub's board";

/* Stores the reason, and is -1. */
#define REFUSE(target, ...) (snprintf((target)->refusal, TARGET_TEXT_BYTES, __VA_ARGS__), -1)

/*
 * An ended process stays in /proc until its parent waits for it. When a process ends, the kernel
 * sets FLAG_EXITING, closes the process's files, and changes the process's state, in this order.
 */
bool target_alive(const struct target *target)
{
	char stat[512];
	const char *after_name;
	unsigned flags;
	char state;

	if (!proc_read(target->proc, "stat", stat, sizeof(stat)))
		return false;
	after_name = strrchr(stat, ')'); /* the process's name may contain a ')' */
	if (!after_name || sscanf(after_name, ") %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
		return false;
	return state != 'Z' && state != 'X' && (flags & FLAG_EXITING) == 0;
}

uint64_t hub_clock_ns(const struct hub *hub)
{
	static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME };

	if (hub->about.manual != 0 || hub->about.clock >= sizeof(clocks) / sizeof(clocks[0]))
		return 0;
	return clock_read_ns(clocks[hub->about.clock]) + hub->ahead_ns;
}

/*
 * Stores the offsets of CLOCK_MONOTONIC and CLOCK_BOOTTIME in a process's time namespace. /proc has
 * only the offsets for the children of the process. Returns false if these are in another
 * namespace, or if the offsets cannot be read.
 */
static bool namespace_adds(int proc, const char *own, uint64_t ret_ns[2])
{
	char children[64] = "", offsets[256];
	long long s[2], ns[2];

	if (readlinkat(proc, "ns/time_for_children", children, sizeof(children) - 1) < 0 ||
	    strcmp(own, children) != 0 ||
	    !proc_read(proc, "timens_offsets", offsets, sizeof(offsets)) ||
	    sscanf(offsets, "monotonic %lld %lld boottime %lld %lld", &s[0], &ns[0], &s[1],
	           &ns[1]) != 4)
		return false;
	for (unsigned i = 0; i < 2; i++) /* an offset can be negative, so the sum wraps around */
		ret_ns[i] = (uint64_t)s[i] * NS_PER_S + (uint64_t)ns[i];
	return true;
}

/*
 * Stores how far the clocks of a process are ahead of the tool's. They differ only if the two are
 * in different time namespaces. Returns false if the kernel does not tell.
 */
static bool clocks_ahead(int proc, uint64_t ret_ns[2])
{
	int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char own[64] = "", other[64] = "";
	uint64_t own_ns[2] = { 0 };
	bool known;

	ret_ns[0] = ret_ns[1] = 0;
	/* Before Linux 5.6 there are no such links, as there is one namespace. */
	known = readlinkat(self, "ns/time", own, sizeof(own) - 1) < 0 ||
	        readlinkat(proc, "ns/time", other, sizeof(other) - 1) < 0 ||
	        strcmp(own, other) == 0 ||
	        (namespace_adds(self, own, own_ns) && namespace_adds(proc, other, ret_ns));
	for (unsigned i = 0; i < 2; i++)
		ret_ns[i] -= own_ns[i];
	if (self >= 0)
		(void)close(self);
	return known;
}

static void hub_forget(struct hub *hub)
{
	(void)munmap((void *)(uintptr_t)hub->board, sizeof(*hub->board));
}

void target_close(struct target *target)
{
	for (unsigned i = 0; i < target->hub_count; i++)
		hub_forget(&target->hubs[i]);
	if (target->proc >= 0)
		(void)close(target->proc);
}

/*
 * Copies the header of the board behind `fd`. Returns NULL, or the reason why the memory must not
 * be read as the board of this process.
 */
static const char *board_refused(int fd, uint32_t own_pid, struct board_header *about)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat stat;

	if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &stat) < 0)
		return foreign;
	memset(about, 0, sizeof(*about));
	if (pread(fd, about, sizeof(*about), 0) < (ssize_t)offsetof(struct board_header, pid) ||
	    about->magic != BOARD_MAGIC)
		return foreign;
	/*
	 * Boards of one version have one layout. The sizes show that the other program's compiler
	 * laid out the structs like the tool's compiler.
	 */
	if (about->version != BOARD_VERSION || about->header_bytes != sizeof(*about) ||
	    about->board_bytes != sizeof(struct board))
		return "uses another version of timerhub than this tool";
	if ((uint64_t)stat.st_size < about->board_bytes)
		return foreign;
	make_printable(about->thread_name, sizeof(about->thread_name));
	make_printable(about->library_version, sizeof(about->library_version));
	return about->pid == own_pid ? NULL : "was forked from the process that opened the hub";
}

static bool hub_known(const struct target *target, const struct stat *stat)
{
	for (unsigned i = 0; i < target->hub_count; i++)
		if (target->hubs[i].inode == stat->st_ino && target->hubs[i].device == stat->st_dev)
			return true;
	return false;
}

/* Returns NULL, or the reason why the descriptor `fd` of a board is not watched. */
static const char *target_add(struct target *target, int fd, int number, uint32_t own_pid)
{
	struct hub hub = { .fd = number };
	const char *refused;
	struct stat stat;
	unsigned place;
	void *map;

	if (fstat(fd, &stat) < 0 || hub_known(target, &stat) ||
	    target->hub_count == TARGET_HUBS_MAX)
		return NULL;
	refused = board_refused(fd, own_pid, &hub.about);
	if (refused)
		return refused;
	map = mmap(NULL, sizeof(struct board), PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return foreign;
	hub.board = map;
	hub.inode = stat.st_ino;
	hub.device = stat.st_dev;
	hub.about.opened_ns -= target->ahead_ns[0];     /* a time of CLOCK_MONOTONIC */
	if (hub.about.clock <= TIMERHUB_CLOCK_BOOTTIME) /* namespaces share the wall clock */
		hub.ahead_ns = target->ahead_ns[hub.about.clock];
	if (u32_load_acquire(&hub.board->header.state) != BOARD_OPEN) {
		hub_forget(&hub);
		return NULL;
	}
	for (place = target->hub_count++; place > 0; place--) {
		if (target->hubs[place - 1].about.serial <= hub.about.serial)
			break;
		target->hubs[place] = target->hubs[place - 1];
	}
	target->hubs[place] = hub;
	return NULL;
}

/*
 * Adds the hub of a descriptor in /proc/PID/fd, which the process may have closed by now. Returns
 * NULL, or the reason why it is not watched.
 */
static const char *target_look_at(struct target *target, int folder, const char *name,
                                  uint32_t own_pid)
{
	char link[sizeof(MEMFD_LINK) + 1] = "";
	const char *refused;
	int fd;

	if (readlinkat(folder, name, link, sizeof(link) - 1) < 0)
		return errno == EACCES ? "may not be looked at" : NULL;
	if (strcmp(link, MEMFD_LINK) != 0)
		return NULL;
	fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return NULL;
	refused = target_add(target, fd, atoi(name), own_pid);
	(void)close(fd);
	return refused;
}

static bool hub_there(const struct target *target, const struct hub *hub)
{
	char path[32];
	struct stat stat;

	/* After an exec the same number may be that of another file. */
	(void)snprintf(path, sizeof(path), "fd/%d", hub->fd);
	return u32_load_acquire(&hub->board->header.state) == BOARD_OPEN &&
	       fstatat(target->proc, path, &stat, 0) == 0 && stat.st_ino == hub->inode &&
	       stat.st_dev == hub->device;
}

/* Refuses because the process has ended, or if it lives, for this reason. */
static int refuse_living(struct target *target, const char *reason, const char *more)
{
	if (!target_alive(target))
		return REFUSE(target, "process %d has ended", (int)target->pid);
	return REFUSE(target, "process %d (%s) %s%s", (int)target->pid, target->command, reason,
	              more);
}

static int find_hubs(struct target *target)
{
	const char *reason = no_hub, *refused;
	unsigned known = target->hub_count;
	char status[PROC_STATUS_BYTES];
	struct dirent *entry;
	uint32_t own_pid;
	DIR *folder;

	/* the PID that the process itself sees, and writes into its boards */
	(void)proc_read(target->proc, "status", status, sizeof(status));
	own_pid = proc_inner_number(status, "\nNStgid:", (uint32_t)target->pid);
	target->found_ns = clock_monotonic_ns();
	target->hub_count = 0;
	for (unsigned i = 0; i < known; i++)
		if (hub_there(target, &target->hubs[i]))
			target->hubs[target->hub_count++] = target->hubs[i];
		else
			hub_forget(&target->hubs[i]);
	if (!clocks_ahead(target->proc, target->ahead_ns))
		return refuse_living(target, "is in a time namespace of unknown clocks", "");
	folder = proc_folder(target->proc, "fd");
	if (!folder)
		return refuse_living(target, "may not be looked at: ", strerror(errno));
	while ((entry = readdir(folder)))
		if (isdigit((unsigned char)entry->d_name[0])) {
			refused = target_look_at(target, dirfd(folder), entry->d_name, own_pid);
			reason = refused ? refused : reason;
		}
	(void)closedir(folder);
	return target->hub_count > 0 ? 0 : refuse_living(target, reason, "");
}

int target_refresh(struct target *target)
{
	unsigned there = 0;

	for (unsigned i = 0; i < target->hub_count; i++)
		there += hub_there(target, &target->hubs[i]);
	if (there == 0 || there < target->hub_count ||
	    clock_monotonic_ns() - target->found_ns >= FIND_EVERY_NS)
		return find_hubs(target);
	return target_alive(target) ? 0 : refuse_living(target, "", "");
}

int target_open(struct target *target, pid_t pid)
{
	char path[32];

	memset(target, 0, sizeof(*target));
	target->pid = pid;
	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	target->proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (target->proc < 0 && errno != ENOENT && errno != ESRCH)
		return REFUSE(target, "%s: %s", path, strerror(errno));
	/* With the option hidepid of proc(5) there is no folder, but there is a process. */
	if (!proc_read(target->proc, "comm", target->command, sizeof(target->command)) &&
	    kill(pid, 0) < 0 && errno == EPERM)
		return REFUSE(target, "process %d may not be looked at: /proc hides it", (int)pid);
	if (target->proc < 0)
		return REFUSE(target, "there is no process %d", (int)pid);
	target->command[strcspn(target->command, "\n")] = 0;
	make_printable(target->command, sizeof(target->command));
	return find_hubs(target);
}
