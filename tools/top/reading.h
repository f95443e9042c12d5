/* SPDX-License-Identifier: MIT */
/*
 * A reading has what the board of a hub or a loop said at one moment. Here it is also compared with
 * the reading before, and the counters have the names under which all outputs show them.
 */
#ifndef TOP_READING_H
#define TOP_READING_H

#include <metrics/openmetrics.h>

#include "target.h"

#define READING_QUEUES_MAX 64 /* how many queues a reading lists; its sums count all of them */
#define READING_RHYTHM 60     /* how many readings the line of the latest ones has */
#define READING_GREW 3        /* what grew in so many readings, one after the other, is marked */

struct queue_reading {
	uint32_t index;
	int fd;
	uint64_t delivered, delivered_before; /* at this reading, and at the one before */
	uint64_t overruns;
	uint64_t waiting;    /* number of handles in the outbox; withdrawn expiries count too */
	uint64_t address;    /* of the queue in the process */
	uint64_t untaken_ns; /* for how long nobody has taken what waits; 0: nothing waits */
	unsigned grew;       /* in how many readings in a row `waiting` has grown */
};

struct reading {
	const struct reading *before; /* the reading before of the same hub or loop, or NULL */
	struct board_header about;
	uint64_t at_ns;    /* time of the reading by CLOCK_MONOTONIC */
	uint64_t clock_ns; /* and on the clock of the hub or loop; 0: it is not known */
	/* of a loop only `lateness`, `slow_callbacks` and `slow_sum_ns` */
	struct timerhub_stats stats;
	uint64_t inbox; /* changes that the owner of a hub has not read */
	uint64_t added, turns, callbacks, empty_wakes, turn_max_ns, refused; /* of a loop */
	uint64_t address;    /* of the loop in the process */
	uint64_t overdue_ns; /* for how long the loop has been due; 0: it is not */
	/* how many timers were due in each range of base/ahead.h, and when; 0: it is not known */
	uint64_t ahead[AHEAD_RANGES], ahead_at_ns;
	unsigned slow_count; /* number of functions whose callbacks were slow */
	struct slow_reading slow[SLOW_FUNCTIONS];
	struct thread owner; /* the hub's owner thread; tid 0: it is not known */
	/* how many queues are open, and how many of them `queues` has, with the fullest first */
	uint32_t queue_count, queues_listed;
	struct queue_reading queues[READING_QUEUES_MAX];
	/* from here on: compared with earlier readings, see reading_follow() */
	unsigned inbox_grew;
	char rhythm[READING_RHYTHM + 1]; /* a character for each reading, the latest is the last */
};

/* Returns the increase of a counter per second. The two readings are elapsed_ns apart. */
double reading_rate(uint64_t now, uint64_t before, uint64_t elapsed_ns);

/* ---- counters ---- */

struct counter {
	const char *name; /* in JSON */
	size_t at;        /* where struct reading has it */
	size_t from;      /* where struct board has it; SIZE_MAX: it is computed */
	const char *row;  /* name on a page, which shows its rate as well; NULL: on no page */
	/* the counter's metric; no name: it has none, or timerhub_stats_metrics(3) has it */
	struct metrics_family family;
};

/* Returns the counters of a hub or a loop. The last one is followed by one without a name. */
const struct counter *counters_of(enum board_kind kind);
uint64_t counter_value(const struct counter *counter, const struct reading *reading);

/* ---- lateness ---- */

enum late { TOLD_LATE, TAKEN_LATE }; /* of a loop, whose thread is told nothing: TOLD_LATE */
enum period { LATELY, SINCE_OPEN };  /* lately: since the reading before */
enum bound { P50, P99, LATEST, BOUNDS };

struct lateness {
	uint64_t count;
	uint64_t below_ns[BOUNDS]; /* percentiles and maximum, as upper bounds; 0 if count is 0 */
	uint64_t buckets[BOARD_LATENESS_BUCKETS];
};

/* Returns how late events were. LATELY has a count of 0 if there is no reading before. */
struct lateness lateness_of(const struct reading *reading, enum late late, enum period period);

/* Returns the exclusive upper bound of a bucket, or UINT64_MAX if the bucket has none. */
uint64_t lateness_below_ns(unsigned bucket);

/* Return the names of a clock and of a sleeper for the output. */
const char *clock_name(const struct board_header *about);
const char *sleeper_name(uint32_t sleeper);

/* ---- the watch, which reads a process again and again ---- */

struct watch {
	struct target target;
	unsigned count;                /* number of latest readings, one of each hub and loop */
	struct reading *now, *earlier; /* the latest readings, and those before */
	struct runnings *running, *earlier_running;
	struct function_names *names;
	struct reading readings[2][TARGET_HUBS_MAX];
	struct runnings runnings[2];
};

/*
 * Opens the process `pid` and reads its hubs for the first time. All of *watch must be 0. Returns
 * 0, or -1 with the reason in target.refusal. The caller closes `names` and `target` in both cases.
 */
int watch_open(struct watch *watch, pid_t pid);

/*
 * Finds new hubs, forgets closed ones, and reads all. Returns -1 if none is left, with the reason
 * in target.refusal.
 */
int watch_read(struct watch *watch);

#endif
