/* SPDX-License-Identifier: MIT */
/* The numbers of a board at one instant, and the differences between two such readings. */
#ifndef TOP_READING_H
#define TOP_READING_H

#include "base/board.h"

/* At most this many queues are listed. The sums count all queues. */
#define READING_QUEUES_MAX 64

struct queue_reading {
	uint32_t index;
	int fd;
	uint64_t delivered;
	uint64_t overruns;
	uint64_t waiting; /* handles in its outbox, including withdrawn expiries */
};

/*
 * The counters began when the hub was opened. The counters have the names of struct timerhub_stats.
 */
struct reading {
	uint64_t at_ns; /* CLOCK_MONOTONIC */
	uint64_t armed, refiled, cancelled, expired, delivered, overruns;
	uint64_t live, live_max;
	uint64_t inbox, inbox_max;
	uint64_t outbox; /* sum over all queues */
	uint64_t owner_wakeups, submit_wakes, queue_signals, cascaded, clock_jumps;
	uint64_t sleeper;
	uint64_t lateness[BOARD_LATENESS_BUCKETS];
	uint32_t queue_count; /* number of open queues */
	struct queue_reading queues[READING_QUEUES_MAX];
};

void reading_take(const struct board *board, struct reading *ret_reading);

/* Returns CLOCK_MONOTONIC. */
uint64_t reading_clock_ns(void);

/*
 * Returns `now` minus `before`, or 0 if this is negative. The difference may be negative, because
 * threads change the numbers during a reading.
 */
uint64_t reading_more(uint64_t now, uint64_t before);

/* Returns the increase per second of a number between two readings. */
double reading_rate(uint64_t now, uint64_t before, uint64_t elapsed_ns);

/*
 * Upper bounds of latenesses, in ns. The bounds are powers of two, because the histogram's bounds
 * are.
 */
struct lateness {
	uint64_t count;
	uint64_t p50_below_ns, p99_below_ns, max_below_ns; /* 0 if count is 0 */
	uint64_t buckets[BOARD_LATENESS_BUCKETS];
};

/*
 * Returns the lateness of the events after `before`. If `before` is NULL, all events of the hub
 * count.
 */
struct lateness lateness_between(const struct reading *now, const struct reading *before);

/* Returns the exclusive upper bound of a bucket, or UINT64_MAX if the bucket has no bound. */
uint64_t lateness_below_ns(unsigned bucket);

/* Names for the output. */
const char *clock_name(uint32_t clock, bool manual);
const char *sleeper_name(uint64_t sleeper);

#endif
