/* SPDX-License-Identifier: MIT */
/* What a board says at one instant, and what has happened between two such readings. */
#ifndef TOP_READING_H
#define TOP_READING_H

#include "base/board.h"

/* As many queues are listed; all are counted. */
#define READING_QUEUES_MAX 64

struct queue_reading {
	uint32_t index;
	int fd;
	uint64_t delivered;
	uint64_t overruns;
	uint64_t waiting; /* handles in its outbox, of expiries withdrawn since too */
};

/* The counters are since the hub was opened, and named as in struct timerhub_stats. */
struct reading {
	uint64_t at_ns; /* CLOCK_MONOTONIC */
	uint64_t armed, refiled, cancelled, expired, delivered, overruns;
	uint64_t live, live_max;
	uint64_t inbox, inbox_max;
	uint64_t outbox; /* of all queues */
	uint64_t owner_wakeups, submit_wakes, queue_signals, cascaded, clock_jumps;
	uint64_t sleeper;
	uint64_t lateness[BOARD_LATENESS_BUCKETS];
	uint32_t queue_count; /* open now */
	struct queue_reading queues[READING_QUEUES_MAX];
};

void reading_take(const struct board *board, struct reading *ret_reading);

/* CLOCK_MONOTONIC. */
uint64_t reading_clock_ns(void);

/* How much `now` is above `before`: 0 if it is not, for numbers read while threads go on. */
uint64_t reading_more(uint64_t now, uint64_t before);

/* How often a second, from one reading's number to a later one's. */
double reading_rate(uint64_t now, uint64_t before, uint64_t elapsed_ns);

/* Times below which something lay, in ns: all that a histogram with bounds of 2^i can tell. */
struct lateness {
	uint64_t count;
	uint64_t p50_below_ns, p99_below_ns, max_below_ns; /* 0 if count is */
	uint64_t buckets[BOARD_LATENESS_BUCKETS];
};

/* Since `before`, or if that is NULL since the hub was opened. */
struct lateness lateness_between(const struct reading *now, const struct reading *before);

/* The upper bound of a bucket, exclusive; UINT64_MAX: there is none. */
uint64_t lateness_below_ns(unsigned bucket);

/* In words. */
const char *clock_name(uint32_t clock, bool manual);
const char *sleeper_name(uint64_t sleeper);

#endif
