/* SPDX-License-Identifier: MIT */
/*
 * Reads what the kernel tells of threads. See target.h. A file that may not be read leaves its part
 * of the answer empty: wchan and syscall want more rights than the rest.
 */
#include "target.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

#define CALL(name)                                                                                 \
	{                                                                                          \
		SYS_##name, #name                                                                  \
	}

/* The system calls in which threads sleep. Others are shown by their numbers. */
static const struct {
	long number;
	const char *name;
} sleeping_calls[] = {
#ifdef SYS_poll
	CALL(poll),           CALL(select),          CALL(epoll_wait),      CALL(open),
	CALL(pause),
#endif
	CALL(ppoll),          CALL(pselect6),        CALL(epoll_pwait),     CALL(epoll_pwait2),
	CALL(io_uring_enter), CALL(nanosleep),       CALL(clock_nanosleep), CALL(futex),
	CALL(read),           CALL(pread64),         CALL(readv),           CALL(write),
	CALL(pwrite64),       CALL(writev),          CALL(fsync),           CALL(fdatasync),
	CALL(openat),         CALL(flock),           CALL(fcntl),           CALL(ioctl),
	CALL(connect),        CALL(accept),          CALL(accept4),         CALL(recvfrom),
	CALL(recvmsg),        CALL(sendto),          CALL(sendmsg),         CALL(wait4),
	CALL(waitid),         CALL(rt_sigtimedwait), CALL(rt_sigsuspend)
};

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

/* Copies the text up to the character `end`, in printable ASCII. */
static void copy_line(char to[THREAD_TEXT_BYTES], const char *text, const char *end)
{
	(void)snprintf(to, THREAD_TEXT_BYTES, "%.*s", (int)strcspn(text, end), text);
	make_printable(to, THREAD_TEXT_BYTES);
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
		copy_line(ret_thread->name, text, "\n");
	/* The time in stat is in ticks of 10 ms. A kernel that keeps no exact one says 0 here. */
	if (task_read(proc, folder, "schedstat", text, sizeof(text)) &&
	    sscanf(text, "%" SCNu64 " %" SCNu64, &ran_ns, &ret_thread->waited_ns) == 2 &&
	    ran_ns > 0) {
		ret_thread->ran_ns = ran_ns;
		ret_thread->has_waited_ns = true;
	}
	/* Cut off what the compiler appends to a function's name, such as .constprop.0. */
	if (task_read(proc, folder, "wchan", text, sizeof(text)) && strcmp(text, "0") != 0)
		copy_line(ret_thread->wchan, text, ".");
	if (task_read(proc, folder, "syscall", text, sizeof(text)))
		read_syscall(text, ret_thread);
	return true;
}

/* ---- which thread does what ---- */

static void take_cell(struct runnings *now, const struct runnings *before,
                      const struct target *target, const struct hub *hub,
                      const struct board_cell *cell, uint64_t queue)
{
	struct running *row = &now->rows[now->count];

	if (now->count == RUNNING_MAX || !cell_read(cell, &row->cell) ||
	    row->cell.where > TIMERHUB_IN_CALLBACK)
		return;
	row->serial = hub->about.serial;
	row->queue = queue != 0 ? queue : row->cell.queue;
	row->for_ns = reading_more(hub_clock_ns(hub), row->cell.since_ns);
	row->before.tid = 0;
	for (unsigned i = 0; before && i < before->count; i++)
		if (before->rows[i].cell.tid == row->cell.tid)
			row->before = before->rows[i].thread;
	now->count += thread_look(target->proc, (int)row->cell.tid, &row->thread);
}

/* Orders threads inside callbacks before others, and then the longest first. */
static int compare(const void *left, const void *right)
{
	const struct running *one = left, *other = right;
	int in_callback = (other->cell.where == TIMERHUB_IN_CALLBACK) -
	                  (one->cell.where == TIMERHUB_IN_CALLBACK);

	if (in_callback != 0)
		return in_callback;
	if (one->for_ns != other->for_ns)
		return one->for_ns > other->for_ns ? -1 : 1;
	return one->cell.tid < other->cell.tid ? -1 : one->cell.tid > other->cell.tid;
}

void runnings_take(struct runnings *ret_now, const struct runnings *before,
                   const struct target *target)
{
	ret_now->count = 0;
	for (unsigned i = 0; i < target->hub_count; i++) {
		const struct hub *hub = &target->hubs[i];
		const struct board *board = hub->board;
		uint64_t end = u64_load_relaxed(&board->callers.queues_end);

		if (is_loop(&hub->about)) {
			take_cell(ret_now, before, target, hub, &board->loop.cell, 0);
			continue;
		}
		for (unsigned cell = 0; cell < BOARD_CELLS_MAX; cell++)
			take_cell(ret_now, before, target, hub, &board->cells[cell], 0);
		/* Reading an entry that no queue has used would allocate memory of the process. */
		for (uint64_t queue = 0; queue < end && queue < BOARD_QUEUES_MAX; queue++)
			if (u64_load_relaxed(&board->queues[queue].fd_plus_one) != 0)
				take_cell(ret_now, before, target, hub, &board->queues[queue].loop,
				          u64_load_relaxed(&board->queues[queue].address));
	}
	qsort(ret_now->rows, ret_now->count, sizeof(ret_now->rows[0]), compare);
}

const struct running *running_at(const struct runnings *runnings, uint64_t address)
{
	const struct running *found = NULL;

	for (unsigned i = 0; i < runnings->count && address != 0; i++) {
		const struct running *row = &runnings->rows[i];

		if (row->queue != address && row->cell.loop != address)
			continue;
		if (row->cell.where == TIMERHUB_IN_CALLBACK)
			return row;
		found = row; /* the later ones have been there for a shorter time */
	}
	return found;
}
