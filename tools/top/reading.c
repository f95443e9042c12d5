/* SPDX-License-Identifier: MIT */
/*
 * Reads the counters of a hub from its board. See reading.h. The sums are computed as
 * timerhub_stats() in lib/hub/open.c computes them. The watched process may write any value into a
 * board. Therefore a number from a board is bounded before it becomes an index or a size.
 */
#include "reading.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

double reading_rate(uint64_t now, uint64_t before, uint64_t elapsed_ns)
{
	return elapsed_ns == 0 ? 0 : (double)reading_more(now, before) * 1e9 / (double)elapsed_ns;
}

/* ---- counters ---- */

#define COMPUTED SIZE_MAX
#define ROW(json, place, from, on_page, ...)                                                       \
	{                                                                                          \
		(json), offsetof(struct reading, place), (from), (on_page),                        \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define SUM(member, on_page) ROW(#member, stats.member, COMPUTED, on_page, .name = NULL)
#define COUNTER(member, from, on_page)                                                             \
	ROW(#member, stats.member, offsetof(struct board, from), on_page, .name = NULL)
#define OF_LOOP(member, on_page, ...)                                                              \
	ROW(#member, member, offsetof(struct board, loop.member), on_page, __VA_ARGS__)

static const struct counter of_hubs[] = {
	ROW("timers_max", about.timers_max, COMPUTED, NULL, "timerhub_timers_max", "gauge", NULL,
	    "Largest possible number of live timers."),
	SUM(live, NULL),
	SUM(live_max, NULL),
	SUM(armed, "armed"),
	COUNTER(refiled, owner.refiled, "refiled *"),
	SUM(cancelled, "cancelled"),
	COUNTER(expired, owner.expired, "expired"),
	SUM(delivered, "delivered"),
	SUM(overruns, "overruns"),
	ROW("inbox", inbox, COMPUTED, NULL, "timerhub_inbox", "gauge", NULL,
	    "Entries in the inbox that the owner has not read."),
	COUNTER(inbox_max, owner.inbox_max, NULL),
	ROW("outbox", stats.waiting, COMPUTED, NULL, "timerhub_outbox", "gauge", NULL,
	    "Expiries that no consumer has taken yet."),
	COUNTER(owner_wakeups, owner.wakeups, "owner wake-ups"),
	COUNTER(submit_wakes, callers.submit_wakes, "woken by callers"),
	COUNTER(queue_signals, owner.queue_signals, "queue signals"),
	COUNTER(cascaded, owner.cascaded, NULL),
	COUNTER(clock_jumps, owner.clock_jumps, NULL),
	COUNTER(slow_callbacks, slow.count, NULL),
	COUNTER(slow_sum_ns, slow.sum_ns, NULL),
	SUM(untaken_ns, NULL),
	{ .name = NULL },
};

static const struct counter of_loops[] = {
	ROW("timeouts_max", about.timers_max, COMPUTED, NULL, .name = NULL),
	OF_LOOP(added, NULL, "timerhub_loop_added", "gauge", NULL,
	        "Timeouts that are added to the loop."),
	OF_LOOP(turns, "turns", "timerhub_loop_turns", "counter", NULL, "Turns of the loop."),
	OF_LOOP(callbacks, "callbacks", "timerhub_loop_callbacks", "counter", NULL,
	        "Callbacks that the turns have called."),
	OF_LOOP(empty_wakes, "empty wake-ups", "timerhub_loop_empty_wakes", "counter", NULL,
	        "Turns at which a schedule entry was due and nothing was called."),
	OF_LOOP(turn_max_ns, NULL, "timerhub_loop_turn_max_seconds", "gauge", "seconds",
	        "The longest turn."),
	OF_LOOP(refused, "refused calls", "timerhub_loop_refused", "counter", NULL,
	        "Calls refused because the loop belongs to another thread."),
	ROW("overdue_ns", overdue_ns, COMPUTED, NULL, "timerhub_loop_overdue_seconds", "gauge",
	    "seconds", "For how long a loop has been due to turn."),
	COUNTER(slow_callbacks, slow.count, NULL),
	COUNTER(slow_sum_ns, slow.sum_ns, NULL),
	{ .name = NULL },
};

const struct counter *counters_of(enum board_kind kind)
{
	return kind == BOARD_LOOP ? of_loops : of_hubs;
}

uint64_t counter_value(const struct counter *counter, const struct reading *reading)
{
	const void *value = (const char *)reading + counter->at;

	return *(const uint64_t *)value;
}

/* ---- reading a board ---- */

static void read_counters(const struct board *board, struct reading *reading)
{
	const struct counter *counter = counters_of(reading->about.kind);

	for (; counter->name; counter++) {
		const void *from;
		void *to;

		if (counter->from == COMPUTED)
			continue;
		from = (const char *)board + counter->from;
		to = (char *)reading + counter->at;
		*(uint64_t *)to = u64_load_relaxed(from);
	}
}

static void read_histogram(const atomic_u64 *buckets, uint64_t *ret)
{
	for (unsigned i = 0; i < BOARD_LATENESS_BUCKETS; i++)
		ret[i] += u64_load_relaxed(&buckets[i]);
}

static void read_slots(const struct board *board, struct timerhub_stats *stats)
{
	uint64_t takes = 0, used = 0, free_again = 0;

	for (unsigned i = 0; i < BOARD_SHARDS_MAX; i++) {
		uint64_t stack = u64_load_relaxed(&board->shards[i].stack);

		takes += stack >> BOARD_DEPTH_BITS;
		takes += u64_load_relaxed(&board->shards[i].laps) << (64 - BOARD_DEPTH_BITS);
		free_again += stack & ((UINT64_C(1) << BOARD_DEPTH_BITS) - 1);
		used += u64_load_relaxed(&board->shards[i].used);
	}
	stats->armed = reading_more(takes + used, u64_load_relaxed(&board->callers.untaken));
	stats->live = reading_more(used, free_again);
	stats->live_max = used;
}

/* Adds the counters of a queue. Returns how many of its timers have ended by a delivery. */
static uint64_t read_queue(const struct board *board, uint32_t index, struct reading *reading)
{
	const struct board_queue *queue = &board->queues[index];
	uint64_t fd_plus_one = u64_load_relaxed(&queue->fd_plus_one);
	struct queue_reading one = {
		.index = index,
		.fd = (int)(fd_plus_one - 1),
		.delivered = u64_load_relaxed(&queue->delivered),
		.overruns = u64_load_relaxed(&queue->overruns),
		.waiting = board_queue_waiting(queue),
		.address = u64_load_relaxed(&queue->address),
	};

	one.delivered_before = one.delivered;
	if (one.waiting > 0)
		one.untaken_ns =
			reading_more(reading->clock_ns, board_untaken_since_ns(board, index));
	reading->stats.delivered += one.delivered;
	reading->stats.overruns += one.overruns;
	if (fd_plus_one != 0) {
		reading->stats.untaken_ns = u64_max(reading->stats.untaken_ns, one.untaken_ns);
		reading->stats.waiting += one.waiting;
		if (reading->queues_listed < READING_QUEUES_MAX)
			reading->queues[reading->queues_listed++] = one;
		reading->queue_count++;
	}
	return u64_load_relaxed(&queue->retired);
}

static int compare_queues(const void *left, const void *right)
{
	const struct queue_reading *one = left, *other = right;

	if (one->waiting != other->waiting)
		return one->waiting < other->waiting ? 1 : -1;
	return one->index > other->index ? 1 : -1;
}

/* Reads the board of `hub`, which belongs to the process whose folder in /proc is `proc`. */
static void reading_take(int proc, const struct hub *hub, struct reading *ret_reading)
{
	const struct board *board = hub->board;
	uint64_t queues_end = u64_load_relaxed(&board->callers.queues_end);
	struct timerhub_stats *stats = &ret_reading->stats;
	uint64_t owner = u64_load_relaxed(&board->owner.tid);
	uint64_t due_ns = u64_load_relaxed(&board->loop.due_ns);
	uint64_t ended;

	memset(ret_reading, 0, sizeof(*ret_reading));
	ret_reading->about = hub->about;
	ret_reading->at_ns = clock_monotonic_ns();
	ret_reading->clock_ns = hub_clock_ns(hub);
	read_counters(board, ret_reading);
	ret_reading->slow_count = slow_table_read(&board->slow, ret_reading->slow);
	ret_reading->address = u64_load_relaxed(&board->loop.address);
	ret_reading->ahead_at_ns = u64_load_relaxed(&board->owner.ahead_at_ns);
	for (unsigned i = 0; i < AHEAD_RANGES; i++)
		ret_reading->ahead[i] = u64_load_relaxed(&board->owner.ahead[i]);
	if (due_ns != 0)
		ret_reading->overdue_ns = reading_more(ret_reading->clock_ns, due_ns);
	/*
	 * The slots are read before the queues, because the library counts an ended timer before it
	 * frees the timer's slot. So the timer of each slot that read_slots() finds free is in the
	 * counters that read_queue() finds.
	 */
	read_slots(board, stats);
	ended = u64_load_relaxed(&board->callers.dropped) + stats->live;
	/* To read an entry that no queue has used would allocate memory of the process. */
	for (uint32_t i = 0; i < queues_end && i < BOARD_QUEUES_MAX; i++)
		ended += read_queue(board, i, ret_reading);
	qsort(ret_reading->queues, ret_reading->queues_listed, sizeof(ret_reading->queues[0]),
	      compare_queues);
	for (unsigned i = 0; i < BOARD_LANES_MAX; i++) {
		const struct board_lane *lane = &board->lanes[i];
		uint64_t head = u64_load_relaxed(&lane->head);
		uint64_t drained = u64_load_relaxed(&lane->drained);

		ret_reading->inbox += reading_more(u64_load_relaxed(&lane->tail), head);
		ret_reading->inbox += reading_more(u64_load_relaxed(&lane->spilled), drained);
	}
	stats->sleeper = (uint32_t)u64_load_relaxed(&board->owner.sleeper);
	read_histogram(board->owner.lateness, stats->lateness);
	for (unsigned cpu = 0; cpu < BOARD_DELIVERIES_MAX; cpu++)
		read_histogram(board->deliveries[cpu].lateness, stats->delivery_lateness);
	stats->cancelled = reading_more(stats->armed, ended);
	if (owner > 0 && owner <= INT_MAX && !thread_look(proc, (int)owner, &ret_reading->owner))
		ret_reading->owner.tid = 0;
}

/* ---- comparing readings ---- */

/* Returns the character of the rhythm for the latest event of this interval. */
static char rhythm_of(const struct reading *now)
{
	static const unsigned bits[] = { 20, 24, 27, 30 };
	uint64_t told = lateness_of(now, TOLD_LATE, LATELY).below_ns[LATEST];
	uint64_t taken = lateness_of(now, TAKEN_LATE, LATELY).below_ns[LATEST];
	uint64_t waits_ns = u64_max(now->overdue_ns, now->stats.untaken_ns);
	uint64_t latest = u64_max(u64_max(told, taken), waits_ns);
	unsigned step = 0;

	if (latest == 0)
		return ' ';
	while (step < 4 && latest > UINT64_C(1) << bits[step])
		step++;
	return ".:+#@"[step];
}

static void queue_follow(struct queue_reading *now, const struct queue_reading *before)
{
	now->delivered_before = before->delivered;
	now->grew = now->waiting > before->waiting ? before->grew + 1 : 0;
}

/* Finds the same hub in the `earlier` readings, and compares the two readings with each other. */
static void reading_follow(struct reading *now, const struct reading *earlier, unsigned count)
{
	const struct reading *before = NULL;
	size_t length, drop;

	for (unsigned i = 0; i < count && !before; i++)
		before = earlier[i].about.serial == now->about.serial ? &earlier[i] : NULL;
	now->before = before;
	if (!before)
		return;
	now->inbox_grew = now->inbox > before->inbox ? before->inbox_grew + 1 : 0;
	for (uint32_t i = 0; i < now->queues_listed; i++)
		for (uint32_t j = 0; j < before->queues_listed; j++)
			if (before->queues[j].index == now->queues[i].index)
				queue_follow(&now->queues[i], &before->queues[j]);
	length = strlen(before->rhythm);
	drop = length == READING_RHYTHM;
	memcpy(now->rhythm, before->rhythm + drop, length - drop);
	now->rhythm[length - drop] = rhythm_of(now);
}

/* ---- lateness ---- */

uint64_t lateness_below_ns(unsigned bucket)
{
	return bucket >= BOARD_LATENESS_BUCKETS - 1 ? UINT64_MAX : (uint64_t)2 << bucket;
}

struct lateness lateness_of(const struct reading *reading, enum late late, enum period period)
{
	const struct timerhub_stats *now = &reading->stats;
	const struct timerhub_stats *then = reading->before ? &reading->before->stats : now;
	const uint64_t *buckets = late == TOLD_LATE ? now->lateness : now->delivery_lateness;
	const uint64_t *before = late == TOLD_LATE ? then->lateness : then->delivery_lateness;
	struct lateness lateness = { .count = 0 };
	uint64_t seen = 0, wanted[BOUNDS];

	for (unsigned i = 0; i < BOARD_LATENESS_BUCKETS; i++) {
		lateness.buckets[i] = reading_more(buckets[i], period == LATELY ? before[i] : 0);
		lateness.count += lateness.buckets[i];
	}
	wanted[P50] = (lateness.count + 1) / 2;
	wanted[P99] = lateness.count - lateness.count / 100;
	wanted[LATEST] = lateness.count;
	for (unsigned i = 0; i < BOARD_LATENESS_BUCKETS; i++) {
		seen += lateness.buckets[i];
		for (unsigned bound = 0; bound < BOUNDS && seen > 0; bound++)
			if (lateness.below_ns[bound] == 0 && seen >= wanted[bound])
				lateness.below_ns[bound] = lateness_below_ns(i);
	}
	return lateness;
}

const char *clock_name(const struct board_header *about)
{
	static const char *const names[] = { "monotonic", "boottime", "realtime" };

	if (about->manual != 0)
		return "manual";
	return about->clock < sizeof(names) / sizeof(names[0]) ? names[about->clock] : "unknown";
}

const char *sleeper_name(uint32_t sleeper)
{
	static const char *const names[] = {
		[TIMERHUB_SLEEPER_AUTO] = "none",
		[TIMERHUB_SLEEPER_URING] = "io_uring",
		[TIMERHUB_SLEEPER_POLL] = "ppoll",
	};

	return sleeper < sizeof(names) / sizeof(names[0]) ? names[sleeper] : "unknown";
}

/* ---- the watch ---- */

int watch_open(struct watch *watch, pid_t pid)
{
	watch->now = watch->readings[0];
	watch->earlier = watch->readings[1];
	watch->running = &watch->runnings[0];
	watch->earlier_running = &watch->runnings[1];
	if (target_open(&watch->target, pid) < 0)
		return -1;
	watch->names = function_names_open(watch->target.proc);
	return watch_read(watch);
}

int watch_read(struct watch *watch)
{
	struct reading *now = watch->earlier;
	struct runnings *running = watch->earlier_running;
	unsigned earlier_count = watch->count;

	if (target_refresh(&watch->target) < 0)
		return -1;
	watch->earlier = watch->now;
	watch->now = now;
	watch->count = watch->target.hub_count;
	for (unsigned i = 0; i < watch->count; i++) {
		reading_take(watch->target.proc, &watch->target.hubs[i], &now[i]);
		reading_follow(&now[i], watch->earlier, earlier_count);
	}
	watch->earlier_running = watch->running;
	watch->running = running;
	runnings_take(running, watch->earlier_running, &watch->target);
	for (unsigned i = 0; i < running->count; i++)
		running->rows[i].function = function_name(watch->names, running->rows[i].cell.fn);
	return 0;
}
