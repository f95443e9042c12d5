/* SPDX-License-Identifier: MIT */
/*
 * Watches for stalls. See outputs.h. A stall is a queue in which events wait and from which nobody
 * takes any, or a loop that is due and does not turn, for longer than the threshold.
 *
 * The boards are read ten times in the threshold. When something has waited for half of it, the
 * threads are looked at, so that there is something to compare with when it has waited for all of
 * it. What is seen of a thread counts only if its stall still goes on after the look.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "outputs.h"

#define TICK_MIN_NS 5000000
#define TICK_MAX_NS 100000000
#define STALLS_MAX 256
#define LOOKS_MAX 5

/* Something that waits, perhaps not for long enough. */
struct stall {
	struct board_header about; /* of the hub or loop */
	uint32_t queue;            /* index of the queue */
	uint64_t address;          /* of the queue or the loop in the process */
	uint64_t since_ns;         /* on the clock of the hub or loop */
	uint64_t for_ns;           /* how long it has waited, or had waited when it ended */
	uint64_t waiting;          /* how many events wait */
	uint64_t found_ns;         /* when it was first seen, by CLOCK_MONOTONIC */
	bool is_there;             /* in the latest reading */
	bool is_told;              /* the line of its begin is printed */
	unsigned looks;            /* how often the thread was looked at */
	/* the thread at the latest look; running.before: at the first; tid 0: it is not known */
	struct running running;
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

/* Notes that something has waited since then, if that is long enough to look at. */
static void note(struct stalls *stalls, const struct hub *hub, uint32_t queue, uint64_t address,
                 uint64_t waiting, uint64_t since_ns, uint64_t now_ns)
{
	struct stall *stall = stalls->list, *end = stalls->list + stalls->count;

	if (reading_more(now_ns, since_ns) < stalls->threshold_ns / 2)
		return;
	while (stall < end && (stall->about.serial != hub->about.serial || stall->queue != queue ||
	                       stall->since_ns != since_ns))
		stall++;
	if (stall == stalls->list + STALLS_MAX)
		return;
	if (stall == end) {
		stalls->count++;
		*stall =
			(struct stall){ .about = hub->about, .queue = queue, .since_ns = since_ns };
		stall->found_ns = clock_monotonic_ns();
	}
	stall->is_there = true;
	stall->address = address;
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
			note(stalls, hub, i, u64_load_relaxed(&queue->address), waiting,
			     board_untaken_since_ns(hub->board, i), now_ns);
	}
}

/* Notes a loop that is due. Only the time since its thread began what it does now counts. */
static void note_loop(struct stalls *stalls, const struct hub *loop)
{
	uint64_t now_ns = hub_clock_ns(loop);
	uint64_t due_ns = u64_load_relaxed(&loop->board->loop.due_ns);
	uint64_t address = u64_load_relaxed(&loop->board->loop.address);
	const struct running *running = running_at(&stalls->running, address);

	if (due_ns == 0 || due_ns >= now_ns)
		return;
	if (running)
		due_ns = u64_max(due_ns, running->cell.since_ns);
	note(stalls, loop, 0, address, 0, due_ns, now_ns);
}

static void note_all(struct stalls *stalls, bool is_alive)
{
	const struct target *target = &stalls->watch->target;

	for (unsigned i = 0; i < stalls->count; i++)
		stalls->list[i].is_there = false;
	for (unsigned i = 0; i < target->hub_count && is_alive; i++) {
		if (is_loop(&target->hubs[i].about))
			note_loop(stalls, &target->hubs[i]);
		else
			note_queues(stalls, &target->hubs[i]);
	}
}

/* ---- who is to blame ---- */

/* Notes what the stall's thread does. Once it is another thread, the comparison begins anew. */
static void look_at(struct stalls *stalls, struct stall *stall)
{
	const struct running *found = running_at(&stalls->running, stall->address);
	struct running now;

	if (!found) {
		stall->running.thread.tid = 0;
		return;
	}
	now = *found;
	now.function = now.cell.fn == stall->running.cell.fn
	                       ? stall->running.function
	                       : function_name(stalls->watch->names, now.cell.fn);
	stall->looks++;
	if (stall->running.thread.tid != now.thread.tid) {
		now.before = now.thread;
	} else {
		now.before = stall->running.before;
		/* A thread that is just waking up may show nothing: keep the last look. */
		if (work_between(&now.before, &now.thread) == WORK_UNKNOWN)
			now.thread = stall->running.thread;
	}
	stall->running = now;
}

/* ---- the lines ---- */

static void print_text(const struct stall *stall, const char *time, const char *what)
{
	struct sentence line = { "" };

	tell(&line, "%s stall %s after %s: ", time, what, span(stall->for_ns).text);
	if (is_loop(&stall->about))
		tell(&line, "loop %" PRIu64 " is due; ", stall->about.serial);
	else
		tell(&line, "queue %" PRIu32 " of hub %" PRIu64 " \"%s\", %" PRIu64 " wait; ",
		     stall->queue, stall->about.serial, stall->about.thread_name, stall->waiting);
	tell_thread(&line, &stall->running, true);
	(void)puts(line.text);
}

static void print_json(const struct stall *stall, const char *time, const char *what)
{
	json_begin(NULL, '{');
	json_text("time", time);
	json_text("stall", what);
	json_number("for_ns", stall->for_ns);
	if (is_loop(&stall->about)) {
		json_number("loop", stall->about.serial);
	} else {
		json_number("hub", stall->about.serial);
		json_number("queue", stall->queue);
		json_number("waiting", stall->waiting);
	}
	if (stall->running.thread.tid != 0)
		json_thread("thread", &stall->running, true);
	json_end('}');
}

static void print_line(const struct stalls *stalls, const struct stall *stall, const char *what)
{
	struct timespec now = timespec_of(clock_read_ns(CLOCK_REALTIME));
	char date[32], time[48];
	struct tm fields;

	(void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", gmtime_r(&now.tv_sec, &fields));
	(void)snprintf(time, sizeof(time), "%s.%03ldZ", date, now.tv_nsec / 1000000);
	if (stalls->json)
		print_json(stall, time, what);
	else
		print_text(stall, time, what);
}

/* ---- the watch ---- */

/* When the stall has ended, if the board says so; else the time of the reading that found it. */
static void end(struct stalls *stalls, struct stall *stall)
{
	const struct target *target = &stalls->watch->target;
	uint64_t ended_ns = 0, taken_ns;

	for (unsigned i = 0; i < target->hub_count; i++) {
		const struct hub *hub = &target->hubs[i];

		if (hub->about.serial != stall->about.serial)
			continue;
		ended_ns = hub_clock_ns(hub);
		if (is_loop(&hub->about))
			continue;
		taken_ns = u64_load_relaxed(&hub->board->queues[stall->queue].taken_ns);
		ended_ns = taken_ns > stall->since_ns ? taken_ns : ended_ns;
	}
	stall->for_ns = u64_max(stall->for_ns, reading_more(ended_ns, stall->since_ns));
	print_line(stalls, stall, "ends");
}

/*
 * Returns whether a stall is to be printed. It must have been seen for a third of the threshold,
 * because the numbers of one reading can be of different moments. What its thread does must be
 * known, unless LOOKS_MAX looks have not shown it.
 */
static bool is_long_enough(const struct stalls *stalls, const struct stall *stall)
{
	const struct running *running = &stall->running;

	return stall->for_ns > stalls->threshold_ns &&
	       clock_monotonic_ns() - stall->found_ns > stalls->threshold_ns / 3 &&
	       (running->thread.tid == 0 || stall->looks > LOOKS_MAX ||
	        work_between(&running->before, &running->thread) != WORK_UNKNOWN);
}

/* Prints what begins and what ends, and forgets what has ended. */
static void print_changes(struct stalls *stalls)
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
			print_line(stalls, stall, "begins");
			stall->is_told = true;
		}
		stalls->list[kept++] = *stall;
	}
	stalls->count = kept;
}

int stalls_run(struct watch *watch, uint64_t threshold_ns, bool json,
               const volatile sig_atomic_t *stop)
{
	static struct stalls stalls;
	uint64_t tick_ns = u64_max(TICK_MIN_NS, u64_min(TICK_MAX_NS, threshold_ns / 10));
	const struct timespec pause = timespec_of(tick_ns);
	bool is_alive = true, is_written = true;

	stalls.watch = watch;
	stalls.threshold_ns = threshold_ns;
	stalls.json = json;
	while (is_alive && is_written && !*stop) {
		/* Without a hub go on, because the process can open one, also after an exec. */
		if (target_refresh(&watch->target) < 0)
			is_alive = target_alive(&watch->target);
		stalls.running.count = 0;
		note_all(&stalls, is_alive);
		if (stalls.count > 0) {
			runnings_take(&stalls.running, NULL, &watch->target);
			note_all(&stalls, is_alive);
		}
		print_changes(&stalls);
		is_written = fflush(stdout) == 0 && !ferror(stdout);
		if (is_alive && is_written)
			(void)nanosleep(&pause, NULL);
	}
	return is_written ? 0 : -1;
}
