/* SPDX-License-Identifier: MIT */
/*
 * A reading has the numbers of a hub's board at one instant. The functions compare two readings of
 * a hub.
 */
#ifndef TOP_READING_H
#define TOP_READING_H

#include "base/counter_board.h"
#include "thread.h"

/* largest number of queues that a reading lists; the sums of a reading count all queues */
#define READING_QUEUES_MAX 64

/* how many readings the line of the latest ones has */
#define READING_RHYTHM 60

/* something that grew in so many readings, one after the other, is marked */
#define READING_GREW 3

struct queue_reading {
	uint32_t index;
	int fd;
	uint64_t delivered;
	uint64_t overruns;
	uint64_t waiting;    /* number of handles in the outbox; withdrawn expiries count too */
	uint64_t address;    /* of the queue in the process */
	uint64_t untaken_ns; /* for how long nobody has taken what waits; 0: nothing waits */
	unsigned grew;       /* in how many readings in a row `waiting` has grown */
};

/*
 * The counters of a hub since the hub was opened. Counters that struct timerhub_stats contains have
 * the same name in both structs.
 */
struct reading {
	uint64_t at_ns; /* time of the reading by CLOCK_MONOTONIC */
	uint64_t armed, refiled, cancelled, expired, delivered, overruns;
	uint64_t live, live_max;
	uint64_t inbox, inbox_max;
	uint64_t outbox; /* number of waiting handles in the outboxes of all queues */
	uint64_t owner_wakeups, submit_wakes, queue_signals, cascaded, clock_jumps;
	uint64_t sleeper;
	uint64_t slow_callbacks, slow_sum_ns, untaken_ns;
	/* of a loop; beside them `lateness` */
	uint64_t added, turns, callbacks, empty_wakes, turn_max_ns, refused;
	uint64_t address;    /* of the loop in the process */
	uint64_t overdue_ns; /* for how long the loop has been due; 0: it is not */
	uint64_t lateness[BOARD_LATENESS_BUCKETS];
	uint64_t delivery_lateness[BOARD_LATENESS_BUCKETS];
	unsigned slow_count; /* number of functions whose callbacks were slow */
	struct slow_reading slow[SLOW_FUNCTIONS];
	uint64_t clock_ns;   /* time of the reading on the clock of the hub or loop; 0: not known */
	struct thread owner; /* the hub's owner thread; tid 0: it is not known */
	uint32_t queue_count;                            /* number of open queues */
	struct queue_reading queues[READING_QUEUES_MAX]; /* those in which most waits come first */
	/* from here on: what the readings before tell, see reading_follow() */
	unsigned inbox_grew;
	char rhythm[READING_RHYTHM + 1]; /* a character for each reading, the latest is the last */
};

/* `clock_ns` is the time on the clock of the hub or loop, read just before; 0: it is not known. */
void reading_take(const struct board *board, uint64_t clock_ns, struct reading *ret_reading);

/* Compares a reading with the one before, and continues what that has noted. */
void reading_follow(struct reading *now, const struct reading *before);

/* Returns what is known of the queue in this reading, or NULL if the queue is not listed. */
const struct queue_reading *reading_queue(const struct reading *reading, uint32_t index);

/* Returns the time of CLOCK_MONOTONIC in nanoseconds. */
uint64_t reading_clock_ns(void);

/*
 * Returns `now` minus `before`, or 0 if the difference is negative. Threads change the counters
 * during a reading. Therefore a computed counter may decrease.
 */
uint64_t reading_more(uint64_t now, uint64_t before);

/* Returns the increase of a counter per second. The two readings are elapsed_ns apart. */
double reading_rate(uint64_t now, uint64_t before, uint64_t elapsed_ns);

/*
 * The distribution of the lateness of events, with upper bounds in ns. Each bound is the result of
 * lateness_below_ns() for a bucket of the histogram.
 */
struct lateness {
	uint64_t count;
	uint64_t p50_below_ns, p99_below_ns, max_below_ns; /* the bounds are 0 if count is 0 */
	uint64_t buckets[BOARD_LATENESS_BUCKETS];
};

/*
 * Returns the lateness of the events between two readings of a histogram. If `before` is NULL,
 * returns the lateness of all events of the hub.
 */
struct lateness lateness_between(const uint64_t *now, const uint64_t *before);

/*
 * Returns the exclusive upper bound of a histogram's bucket, or UINT64_MAX if the bucket has no
 * bound.
 */
uint64_t lateness_below_ns(unsigned bucket);

/* Return the names of a clock and of a sleeper for the output. */
const char *clock_name(uint32_t clock, bool manual);
const char *sleeper_name(uint64_t sleeper);

#endif
