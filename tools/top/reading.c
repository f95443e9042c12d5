/* SPDX-License-Identifier: MIT */
/*
 * Reads the counters of a hub from its board. See reading.h. The sums are computed as
 * timerhub_stats() in lib/hub/open.c computes them. The watched process may write any value into a
 * board. Therefore a number from a board is bounded before it becomes an index or a size.
 */
#define _GNU_SOURCE
#include "reading.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <timerhub.h>

#define DEPTH_MASK (((uint64_t)1 << BOARD_DEPTH_BITS) - 1)

uint64_t reading_clock_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t reading_more(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

double reading_rate(uint64_t now, uint64_t before, uint64_t elapsed_ns)
{
	return elapsed_ns == 0 ? 0 : (double)reading_more(now, before) * 1e9 / (double)elapsed_ns;
}

static void read_owner(const struct board_owner *owner, struct reading *reading)
{
	reading->refiled = u64_load_relaxed(&owner->refiled);
	reading->expired = u64_load_relaxed(&owner->expired);
	reading->inbox_max = u64_load_relaxed(&owner->inbox_max);
	reading->owner_wakeups = u64_load_relaxed(&owner->wakeups);
	reading->queue_signals = u64_load_relaxed(&owner->queue_signals);
	reading->cascaded = u64_load_relaxed(&owner->cascaded);
	reading->clock_jumps = u64_load_relaxed(&owner->clock_jumps);
	reading->sleeper = u64_load_relaxed(&owner->sleeper);
	for (unsigned i = 0; i < BOARD_LATENESS_BUCKETS; i++)
		reading->lateness[i] = u64_load_relaxed(&owner->lateness[i]);
}

static void read_deliveries(const struct board *board, struct reading *reading)
{
	for (unsigned cpu = 0; cpu < BOARD_DELIVERIES_MAX; cpu++)
		for (unsigned i = 0; i < BOARD_LATENESS_BUCKETS; i++)
			reading->delivery_lateness[i] +=
				u64_load_relaxed(&board->deliveries[cpu].lateness[i]);
}

static void read_slots(const struct board *board, struct reading *reading)
{
	uint64_t takes = 0, used = 0, free_again = 0;

	for (unsigned i = 0; i < BOARD_SHARDS_MAX; i++) {
		uint64_t stack = u64_load_relaxed(&board->shards[i].stack);

		takes += stack >> BOARD_DEPTH_BITS;
		takes += u64_load_relaxed(&board->shards[i].laps) << (64 - BOARD_DEPTH_BITS);
		free_again += stack & DEPTH_MASK;
		used += u64_load_relaxed(&board->shards[i].used);
	}
	reading->armed = reading_more(takes + used, u64_load_relaxed(&board->callers.untaken));
	reading->live = reading_more(used, free_again);
	reading->live_max = used;
}

static void read_inbox(const struct board *board, struct reading *reading)
{
	for (unsigned i = 0; i < BOARD_LANES_MAX; i++) {
		const struct board_lane *lane = &board->lanes[i];
		uint64_t head = u64_load_relaxed(&lane->head);
		uint64_t drained = u64_load_relaxed(&lane->drained);

		reading->inbox += reading_more(u64_load_relaxed(&lane->tail), head);
		reading->inbox += reading_more(u64_load_relaxed(&lane->spilled), drained);
	}
}

/*
 * Add the counters of one queue to the reading. Returns the number of its one-shot timers that
 * ended by delivery.
 */
static uint64_t read_queue(const struct board *board, uint32_t index, struct reading *reading)
{
	const struct board_queue *queue = &board->queues[index];
	uint64_t fd_plus_one = u64_load_relaxed(&queue->fd_plus_one);
	struct queue_reading one = {
		.index = index,
		.fd = (int)(fd_plus_one - 1),
		.overruns = u64_load_relaxed(&queue->overruns),
	};
	uint64_t put = u64_load_relaxed(&queue->put);

	one.address = u64_load_relaxed(&queue->address);
	one.delivered = u64_load_relaxed(&queue->delivered);
	one.waiting = reading_more(put, one.delivered + u64_load_relaxed(&queue->passed_over));
	if (one.waiting > 0)
		one.untaken_ns =
			reading_more(reading->clock_ns, board_untaken_since_ns(board, index));
	reading->delivered += one.delivered;
	reading->overruns += one.overruns;
	if (fd_plus_one != 0) {
		reading->untaken_ns = u64_max(reading->untaken_ns, one.untaken_ns);
		reading->outbox += one.waiting;
		if (reading->queue_count < READING_QUEUES_MAX)
			reading->queues[reading->queue_count] = one;
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

static void sort_queues(struct reading *reading)
{
	uint32_t listed = reading->queue_count < READING_QUEUES_MAX ? reading->queue_count
	                                                            : READING_QUEUES_MAX;

	qsort(reading->queues, listed, sizeof(reading->queues[0]), compare_queues);
}

static void read_loop(const struct board_loop *loop, struct reading *reading)
{
	uint64_t due_ns = u64_load_relaxed(&loop->due_ns);

	reading->added = u64_load_relaxed(&loop->added);
	reading->turns = u64_load_relaxed(&loop->turns);
	reading->callbacks = u64_load_relaxed(&loop->callbacks);
	reading->empty_wakes = u64_load_relaxed(&loop->empty_wakes);
	reading->turn_max_ns = u64_load_relaxed(&loop->turn_max_ns);
	reading->refused = u64_load_relaxed(&loop->refused);
	reading->address = u64_load_relaxed(&loop->address);
	if (due_ns != 0)
		reading->overdue_ns = reading_more(reading->clock_ns, due_ns);
}

void reading_take(const struct board *board, uint64_t clock_ns, struct reading *ret_reading)
{
	uint64_t queues_end = u64_load_relaxed(&board->callers.queues_end);
	uint64_t ended = 0;

	memset(ret_reading, 0, sizeof(*ret_reading));
	ret_reading->at_ns = reading_clock_ns();
	ret_reading->clock_ns = clock_ns;
	ret_reading->slow_callbacks = u64_load_relaxed(&board->slow.count);
	ret_reading->slow_sum_ns = u64_load_relaxed(&board->slow.sum_ns);
	ret_reading->slow_count = slow_table_read(&board->slow, ret_reading->slow);
	read_loop(&board->loop, ret_reading);
	/*
	 * Read the slots before the queues. The library counts an ended timer before it frees the
	 * timer's slot. Therefore, if read_slots() counts a slot as free, read_queue() finds the
	 * slot's timer in the counters of a queue.
	 */
	read_slots(board, ret_reading);
	/*
	 * Do not read the entries that no queue has used (index queues_end and higher). Reading an
	 * unused page of the board would allocate memory in the watched process.
	 */
	for (uint32_t i = 0; i < queues_end && i < BOARD_QUEUES_MAX; i++)
		ended += read_queue(board, i, ret_reading);
	sort_queues(ret_reading);
	read_inbox(board, ret_reading);
	read_owner(&board->owner, ret_reading);
	read_deliveries(board, ret_reading);
	ret_reading->submit_wakes = u64_load_relaxed(&board->callers.submit_wakes);
	ended += u64_load_relaxed(&board->callers.dropped) + ret_reading->live;
	ret_reading->cancelled = reading_more(ret_reading->armed, ended);
}

const struct queue_reading *reading_queue(const struct reading *reading, uint32_t index)
{
	for (uint32_t i = 0; i < reading->queue_count && i < READING_QUEUES_MAX; i++)
		if (reading->queues[i].index == index)
			return &reading->queues[i];
	return NULL;
}

/* Returns the character of the rhythm for the latest event of this interval. */
static char rhythm_of(const struct reading *now, const struct reading *before)
{
	static const struct {
		uint64_t below_ns;
		char character;
	} steps[] = { { UINT64_C(1) << 20, '.' },
		      { UINT64_C(1) << 24, ':' },
		      { UINT64_C(1) << 27, '+' },
		      { UINT64_C(1) << 30, '#' } };
	uint64_t told = lateness_between(now->lateness, before->lateness).max_below_ns;
	uint64_t taken =
		lateness_between(now->delivery_lateness, before->delivery_lateness).max_below_ns;
	uint64_t latest = u64_max(u64_max(told, taken), now->overdue_ns);

	for (uint32_t i = 0; i < now->queue_count && i < READING_QUEUES_MAX; i++)
		latest = u64_max(latest, now->queues[i].untaken_ns);
	if (latest == 0)
		return ' ';
	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (latest <= steps[i].below_ns)
			return steps[i].character;
	return '@';
}

void reading_follow(struct reading *now, const struct reading *before)
{
	size_t length = strlen(before->rhythm), drop = length == READING_RHYTHM;

	now->inbox_grew = now->inbox > before->inbox ? before->inbox_grew + 1 : 0;
	for (uint32_t i = 0; i < now->queue_count && i < READING_QUEUES_MAX; i++) {
		struct queue_reading *queue = &now->queues[i];
		const struct queue_reading *earlier = reading_queue(before, queue->index);

		if (earlier && queue->waiting > earlier->waiting)
			queue->grew = earlier->grew + 1;
	}
	memcpy(now->rhythm, before->rhythm + drop, length - drop);
	now->rhythm[length - drop] = rhythm_of(now, before);
	now->rhythm[length - drop + 1] = 0;
}

uint64_t lateness_below_ns(unsigned bucket)
{
	return bucket >= BOARD_LATENESS_BUCKETS - 1 ? UINT64_MAX : (uint64_t)2 << bucket;
}

/* Returns the upper bound of the first bucket at which the sum of events reaches `wanted`. */
static uint64_t lateness_quantile_ns(const struct lateness *lateness, uint64_t wanted)
{
	uint64_t seen = 0;

	for (unsigned i = 0; i < BOARD_LATENESS_BUCKETS; i++) {
		seen += lateness->buckets[i];
		if (seen >= wanted && seen > 0)
			return lateness_below_ns(i);
	}
	return 0;
}

struct lateness lateness_between(const uint64_t *now, const uint64_t *before)
{
	struct lateness lateness = { .count = 0 };

	for (unsigned i = 0; i < BOARD_LATENESS_BUCKETS; i++) {
		lateness.buckets[i] = reading_more(now[i], before ? before[i] : 0);
		lateness.count += lateness.buckets[i];
	}
	lateness.p50_below_ns = lateness_quantile_ns(&lateness, (lateness.count + 1) / 2);
	lateness.p99_below_ns =
		lateness_quantile_ns(&lateness, lateness.count - lateness.count / 100);
	lateness.max_below_ns = lateness_quantile_ns(&lateness, lateness.count);
	return lateness;
}

const char *clock_name(uint32_t clock, bool manual)
{
	static const char *const names[] = { "monotonic", "boottime", "realtime" };

	if (manual)
		return "manual";
	return clock < sizeof(names) / sizeof(names[0]) ? names[clock] : "unknown";
}

const char *sleeper_name(uint64_t sleeper)
{
	switch (sleeper) {
	case TIMERHUB_SLEEPER_AUTO:
		return "none";
	case TIMERHUB_SLEEPER_URING:
		return "io_uring";
	case TIMERHUB_SLEEPER_POLL:
		return "ppoll";
	default:
		return "unknown";
	}
}
