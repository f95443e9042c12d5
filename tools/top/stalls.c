/* SPDX-License-Identifier: MIT */
/*
 * Watches for stalls. See stalls.h. A stall is a queue in which events wait and from which nobody
 * takes any, or a loop that is due and does not turn, for longer than the threshold.
 *
 * The boards are read ten times in the threshold. When something has waited for half of it, the
 * threads are looked at, so that there is something to compare with when it has waited for all of
 * it. What is seen of a thread counts only if its stall still goes on after the look.
 */
#define _GNU_SOURCE
#include "stalls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "blame.h"
#include "json.h"
#include "page.h"
#include "running.h"

#define TICK_MIN_NS 5000000
#define TICK_MAX_NS 100000000
#define STALLS_MAX 256
#define LOOKS_MAX 5

/* Something that waits, perhaps not for long enough. */
struct stall {
	uint64_t serial; /* of the hub or loop */
	bool is_loop;
	char hub[BOARD_TEXT_BYTES]; /* name of the hub's thread */
	uint32_t queue;             /* index of the queue */
	uint64_t since_ns;          /* on the clock of the hub or loop */
	uint64_t for_ns;            /* how long it has waited, or had waited when it ended */
	uint64_t waiting;           /* how many events wait */
	uint64_t found_ns;          /* when it was first seen, by CLOCK_MONOTONIC */
	bool is_there;              /* in the latest reading */
	bool is_told;               /* the line of its begin is printed */
	unsigned looks;             /* how often the thread was looked at */
	/* what was known of the thread when it was last looked at; tid 0: no thread is known */
	struct cell_reading cell;
	struct thread first, last;
	char function[FUNCTION_NAME_BYTES]; /* "" outside callbacks */
};

struct stalls {
	struct watch *watch;
	uint64_t threshold_ns;
	bool json;
	struct runnings running;
	unsigned count;
	struct stall list[STALLS_MAX];
};

/* ---- what waits ---- */

static struct stall *stall_of(struct stalls *stalls, const struct hub *hub, uint32_t queue,
                              uint64_t since_ns)
{
	struct stall *stall;

	for (unsigned i = 0; i < stalls->count; i++) {
		stall = &stalls->list[i];
		if (stall->serial == hub->about.serial && stall->queue == queue &&
		    stall->since_ns == since_ns)
			return stall;
	}
	if (stalls->count == STALLS_MAX)
		return NULL;
	stall = &stalls->list[stalls->count++];
	*stall = (struct stall){ .serial = hub->about.serial,
		                 .is_loop = hub_is_loop(hub),
		                 .queue = queue,
		                 .since_ns = since_ns,
		                 .found_ns = reading_clock_ns() };
	memcpy(stall->hub, hub->about.thread_name, sizeof(stall->hub));
	return stall;
}

static void note(struct stalls *stalls, const struct hub *hub, uint32_t queue, uint64_t waiting,
                 uint64_t since_ns, uint64_t now_ns)
{
	struct stall *stall;

	if (reading_more(now_ns, since_ns) < stalls->threshold_ns / 2)
		return;
	stall = stall_of(stalls, hub, queue, since_ns);
	if (!stall)
		return;
	stall->is_there = true;
	stall->waiting = waiting;
	stall->for_ns = now_ns - since_ns;
}

/* The clock is read before the board, so what waits has waited for at least that long. */
static void note_queues(struct stalls *stalls, const struct hub *hub)
{
	uint64_t end = u64_load_relaxed(&hub->board->callers.queues_end);
	uint64_t now_ns = hub_clock_ns(hub);

	for (uint32_t i = 0; i < end && i < BOARD_QUEUES_MAX && now_ns > 0; i++) {
		const struct board_queue *queue = &hub->board->queues[i];
		uint64_t waiting = board_queue_waiting(queue);

		if (waiting > 0 && u64_load_relaxed(&queue->fd_plus_one) != 0)
			note(stalls, hub, i, waiting, board_untaken_since_ns(hub->board, i),
			     now_ns);
	}
}

/* Finds what the loop's thread does, wherever its cell stands. */
static bool loop_cell_read(const struct target *target, const struct hub *loop,
                           struct cell_reading *ret_cell)
{
	uint64_t address = u64_load_relaxed(&loop->board->loop.address);

	if (cell_read(&loop->board->loop.cell, ret_cell))
		return true;
	for (unsigned i = 0; i < target->hub_count; i++) {
		const struct board *board = target->hubs[i].board;
		uint64_t end = u64_load_relaxed(&board->callers.queues_end);

		for (uint32_t queue = 0; queue < end && queue < BOARD_QUEUES_MAX; queue++)
			if (cell_read(&board->queues[queue].loop, ret_cell) &&
			    ret_cell->loop == address)
				return true;
	}
	return false;
}

static void note_loop(struct stalls *stalls, const struct hub *loop)
{
	uint64_t now_ns = hub_clock_ns(loop);
	uint64_t due_ns = u64_load_relaxed(&loop->board->loop.due_ns);
	struct cell_reading cell;

	if (due_ns == 0 || due_ns >= now_ns)
		return;
	if (loop_cell_read(&stalls->watch->target, loop, &cell))
		due_ns = u64_max(due_ns, cell.since_ns);
	note(stalls, loop, 0, 0, due_ns, now_ns);
}

static void note_all(struct stalls *stalls, bool is_alive)
{
	const struct target *target = &stalls->watch->target;

	for (unsigned i = 0; i < stalls->count; i++)
		stalls->list[i].is_there = false;
	for (unsigned i = 0; i < target->hub_count && is_alive; i++) {
		if (hub_is_loop(&target->hubs[i]))
			note_loop(stalls, &target->hubs[i]);
		else
			note_queues(stalls, &target->hubs[i]);
	}
}

/* ---- who is to blame ---- */

static const struct hub *hub_of(const struct stalls *stalls, const struct stall *stall)
{
	const struct target *target = &stalls->watch->target;

	for (unsigned i = 0; i < target->hub_count; i++)
		if (target->hubs[i].about.serial == stall->serial)
			return &target->hubs[i];
	return NULL;
}

static const struct running *running_of(const struct stalls *stalls, const struct stall *stall)
{
	const struct hub *hub = hub_of(stalls, stall);

	if (!hub)
		return NULL;
	if (stall->is_loop)
		return runnings_of_loop(&stalls->running,
		                        u64_load_relaxed(&hub->board->loop.address));
	return runnings_of_queue(&stalls->running, stall->serial,
	                         u64_load_relaxed(&hub->board->queues[stall->queue].address));
}

/* Notes what the stall's thread does. Once it is another thread, the comparison begins anew. */
static void look_at(struct stalls *stalls, struct stall *stall)
{
	const struct running *running = running_of(stalls, stall);
	enum work work;

	if (!running) {
		stall->first.tid = stall->last.tid = 0;
		return;
	}
	if (stall->cell.fn != running->cell.fn)
		stall->function[0] = 0;
	stall->cell = running->cell;
	stall->looks++;
	if (stall->first.tid != running->thread.tid)
		stall->first = stall->last = running->thread;
	/* A thread that is just being woken tells nothing of what it has done. */
	work = work_between(&stall->first, &running->thread);
	if (work != WORK_UNKNOWN && work != WORK_UNMEASURED)
		stall->last = running->thread;
	if (running->cell.fn != 0 && stall->function[0] == 0)
		function_name(stalls->watch->names, running->cell.fn, stall->function);
}

/* ---- the lines ---- */

static void print_time(void)
{
	struct timespec now;
	struct tm date;
	char text[32];

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", gmtime_r(&now.tv_sec, &date));
	(void)printf("%s.%03ldZ", text, now.tv_nsec / 1000000);
}

static void print_where(const struct stall *stall)
{
	static const char *const places[] = {
		[TIMERHUB_AWAY] = "outside the library",
		[TIMERHUB_IN_CALL] = "in its call, between callbacks",
	};

	(void)printf("thread %d \"%s\" ", stall->last.tid, stall->last.name);
	if (stall->cell.where == TIMERHUB_IN_CALLBACK)
		(void)printf("in %s (%s %" PRIx64 ")", stall->function,
		             cell_names_timeout(&stall->cell) ? "timeout" : "timer",
		             stall->cell.timer);
	else
		(void)printf("%s", places[stall->cell.where]);
}

static void print_text(const struct stall *stall, bool begins)
{
	enum work work = work_between(&stall->first, &stall->last);
	char does[BLAME_BYTES];

	print_time();
	(void)printf(" stall %s after %s: ", begins ? "begins" : "ends", span(stall->for_ns).text);
	if (stall->is_loop)
		(void)printf("loop %" PRIu64 " is due; ", stall->serial);
	else
		(void)printf("queue %" PRIu32 " of hub %" PRIu64 " \"%s\", %" PRIu64 " wait; ",
		             stall->queue, stall->serial, stall->hub, stall->waiting);
	if (stall->last.tid == 0) {
		(void)printf("no thread is known to take from it\n");
		return;
	}
	print_where(stall);
	work_tell(work, &stall->last, stall->cell.where, does);
	(void)printf(", %s", does);
	(void)printf("; ran %s", span(stall->last.ran_ns - stall->first.ran_ns).text);
	if (stall->last.has_waited_ns)
		(void)printf(" and waited %s for a CPU",
		             span(stall->last.waited_ns - stall->first.waited_ns).text);
	(void)printf(" of %s\n", span(stall->last.at_ns - stall->first.at_ns).text);
}

static void print_json_thread(const struct stall *stall)
{
	static const char *const places[] = {
		[TIMERHUB_AWAY] = "away",
		[TIMERHUB_IN_CALL] = "call",
		[TIMERHUB_IN_CALLBACK] = "callback",
	};
	enum work work = work_between(&stall->first, &stall->last);

	(void)printf(",\"thread\":{\"tid\":%d,", stall->last.tid);
	json_text(stdout, "name", stall->last.name);
	(void)printf(",\"where\":\"%s\",", places[stall->cell.where]);
	if (stall->cell.where == TIMERHUB_IN_CALLBACK) {
		json_text(stdout, "function", stall->function);
		(void)printf(",\"timer\":%" PRIu64 ",", stall->cell.timer);
	}
	json_text(stdout, "does", work_name(work));
	(void)printf(",\"state\":\"%c\",", stall->last.state);
	json_text(stdout, "wchan", stall->last.wchan);
	(void)printf(",");
	json_text(stdout, "syscall", stall->last.syscall);
	json_number(stdout, "observed_ns", stall->last.at_ns - stall->first.at_ns);
	json_number(stdout, "ran_ns", stall->last.ran_ns - stall->first.ran_ns);
	if (stall->last.has_waited_ns)
		json_number(stdout, "waited_for_cpu_ns",
		            stall->last.waited_ns - stall->first.waited_ns);
	(void)printf("}");
}

static void print_json(const struct stall *stall, bool begins)
{
	(void)printf("{\"time\":\"");
	print_time();
	(void)printf("\",\"stall\":\"%s\"", begins ? "begins" : "ends");
	json_number(stdout, "for_ns", stall->for_ns);
	json_number(stdout, stall->is_loop ? "loop" : "hub", stall->serial);
	if (!stall->is_loop) {
		json_number(stdout, "queue", stall->queue);
		json_number(stdout, "waiting", stall->waiting);
	}
	if (stall->last.tid != 0)
		print_json_thread(stall);
	(void)printf("}\n");
}

static void print_line(const struct stalls *stalls, const struct stall *stall, bool begins)
{
	if (stalls->json)
		print_json(stall, begins);
	else
		print_text(stall, begins);
}

/* ---- the watch ---- */

/* When the stall has ended, if the board says so; else the time of the reading that found it. */
static void end(struct stalls *stalls, struct stall *stall)
{
	const struct hub *hub = hub_of(stalls, stall);
	uint64_t ended_ns = hub ? hub_clock_ns(hub) : 0;

	if (hub && !stall->is_loop) {
		uint64_t taken_ns = u64_load_relaxed(&hub->board->queues[stall->queue].taken_ns);

		ended_ns = taken_ns > stall->since_ns ? taken_ns : ended_ns;
	}
	stall->for_ns = u64_max(stall->for_ns, reading_more(ended_ns, stall->since_ns));
	print_line(stalls, stall, false);
}

/*
 * A stall must have been seen for a third of the threshold, because the numbers of one reading can
 * be of different moments. A thread must have been looked at twice, or more often if that has not
 * shown what it does.
 */
static bool is_long_enough(const struct stalls *stalls, const struct stall *stall)
{
	enum work work = work_between(&stall->first, &stall->last);
	bool is_judged = work != WORK_UNKNOWN && work != WORK_UNMEASURED;

	return stall->for_ns > stalls->threshold_ns &&
	       reading_clock_ns() - stall->found_ns > stalls->threshold_ns / 3 &&
	       (stall->last.tid == 0 || is_judged || stall->looks > LOOKS_MAX);
}

/* Prints what begins and what ends, and forgets what has ended. */
static void tell(struct stalls *stalls)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < stalls->count; i++) {
		struct stall *stall = &stalls->list[i];

		if (!stall->is_there) {
			if (stall->is_told)
				end(stalls, stall);
			continue;
		}
		look_at(stalls, stall);
		if (!stall->is_told && is_long_enough(stalls, stall)) {
			print_line(stalls, stall, true);
			stall->is_told = true;
		}
		if (kept != i)
			stalls->list[kept] = *stall;
		kept++;
	}
	stalls->count = kept;
}

static int stalls_loop(struct stalls *stalls, const volatile sig_atomic_t *stop)
{
	uint64_t tick_ns = stalls->threshold_ns / 10;
	struct timespec pause = { .tv_sec = 0 };
	bool is_alive = true;

	tick_ns = tick_ns < TICK_MIN_NS ? TICK_MIN_NS : tick_ns;
	pause.tv_nsec = (long)(tick_ns > TICK_MAX_NS ? TICK_MAX_NS : tick_ns);
	while (is_alive && !*stop) {
		/* Without a hub go on, because the process can open one, also after an exec. */
		if (watch_find(stalls->watch) < 0)
			is_alive = target_alive(&stalls->watch->target);
		note_all(stalls, is_alive);
		if (stalls->count > 0) {
			runnings_take(&stalls->running, NULL, &stalls->watch->target);
			note_all(stalls, is_alive);
		}
		tell(stalls);
		if (fflush(stdout) != 0 || ferror(stdout))
			return -1;
		if (is_alive)
			(void)nanosleep(&pause, NULL);
	}
	return 0;
}

int stalls_run(struct watch *watch, uint64_t threshold_ns, bool json,
               const volatile sig_atomic_t *stop)
{
	struct stalls *stalls = calloc(1, sizeof(*stalls));
	int result;

	if (!stalls)
		return -1;
	stalls->watch = watch;
	stalls->threshold_ns = threshold_ns;
	stalls->json = json;
	result = stalls_loop(stalls, stop);
	free(stalls);
	return result;
}
