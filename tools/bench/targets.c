/* SPDX-License-Identifier: MIT */
/*
 * Prints timerhub's own targets ("bars"). Each compares a value of a subject (a measured service)
 * with a limit or with another subject of the same run. Most use CPU time, which depends least on
 * other processes.
 */
#include <stdio.h>
#include <string.h>

#include "report.h"

enum bar_kind {
	AT_MOST,  /* the value may be at most `limit` times the value of `other` */
	AT_LEAST, /* the value must be at least `limit` times the value of `other` */
	MORE      /* the value may be at most `limit` more than the value of `other` */
};

struct bar {
	const char *workload;
	uint32_t timers;
	const char *subject;
	const char *value;
	enum bar_kind kind;
	double limit;
	const char *other;      /* subject to compare with, or NULL */
	const char *floor;      /* another; the larger value counts; or NULL */
	unsigned threads;       /* number of threads for the value. 0 means one. */
	unsigned other_threads; /* number of threads for the value of `other`. 0 means one. */
	uint32_t other_timers;  /* number of timers for the value of `other`. 0: the same */
};

#define CPU "cpu_ns_per_op"
#define WALL "ns_per_op"

/* clang-format off */
#define EVENT_LOOP(subject)                                                                        \
	{ "server", 1000, subject, CPU, MORE, .limit = 3, .other = "touch" },                      \
	{ "server", 100000, subject, CPU, AT_MOST, .limit = 0.25, .other = "libev" },              \
	{ "loop-refresh", 10000, subject, CPU, MORE, .limit = 3, .other = "touch" },               \
	{ "loop-request", 10000, subject, CPU, MORE, .limit = 4, .other = "touch" },               \
	{ "loop-request-later", 10000, subject, CPU, MORE, .limit = 6, .other = "touch" },         \
	{ "loop-expire", 1000000, subject, CPU, AT_MOST, .limit = 0.4, .other = "libev" },         \
	{ "loop-beat", 10000, subject, "wakes_per_length", AT_MOST, .limit = 16 },                 \
	{ "lateness", 10000, subject, "early", AT_MOST, .limit = 0 },                              \
	LATENESS(subject, "timerfd-loop", NULL, 1, 1)
#define LATENESS(subject, peer, hop, p50, p99)                                                     \
	{ "lateness", 10000, subject, "p50_us", AT_MOST, p50, .other = peer, .floor = hop },       \
	{ "lateness", 10000, subject, "p99_us", AT_MOST, p99, .other = peer, .floor = hop }
#define STORE_PUTS(n)                                                                              \
	{ "durable", 1000000, "store", "puts_per_s", AT_LEAST, .limit = 3, .other = "beanstalkd",  \
	  .threads = n, .other_threads = n },                                                      \
	{ "durable", 1000000, "store", "puts_per_s", AT_LEAST, .limit = 0.5, .other = "sqlite",    \
	  .threads = n, .other_threads = n }
#define STORE_WAITS(subject, held, n)                                                              \
	{ "durable", 1000000, subject, "p99_us", AT_MOST, .limit = 2, .other = held,               \
	  .threads = n, .other_threads = n }

static const struct bar bars[] = {
	/* targets for the timeouts of one event loop */
	EVENT_LOOP("timerhub-loop-alone"),
	EVENT_LOOP("timerhub-loop"),

	/* targets for the calls that any thread may make */
	{ "churn", 1000000, "timerhub", CPU, AT_MOST, .limit = 1.5, .other = "heap" },
	{ "batch-churn", 1000000, "timerhub-many", CPU, AT_MOST, .limit = 0.6, .other = "heap" },
	{ "push-and-take", 1000000, "timerhub", WALL, AT_MOST, .limit = 0.7, .other = "heap" },
	{ "refresh", 1000000, "timerhub", WALL, AT_MOST, .limit = 1.3, .other = "floor" },
	{ "refresh", 1000000, "timerhub", WALL, AT_MOST, .limit = 0.5, .other = "libev" },
	{ "batch-rearm", 1000000, "timerhub-many", "caller_ns", AT_MOST,
	  .limit = 0.5, .other = "floor" },
	{ "request", 10000, "timerhub", WALL, AT_MOST, .limit = 40 },
	{ "lateness", 10000, "timerhub", "early", AT_MOST, .limit = 0 },
	LATENESS("timerhub", "timerfd-loop", "hop", 1.15, 1.5),
	LATENESS("timerhub-fifo", "timerfd-loop-fifo", NULL, 0.9, 1.1),
	{ "memory", 1000000, "timerhub", "bytes", AT_MOST, .limit = 72 },

	/* targets for the store */
	{ "durable", 1000000, "store", "puts_per_s", AT_LEAST, .limit = 0.9, .other = "sqlite",
	  .threads = 1 },
	STORE_PUTS(16),
	STORE_PUTS(64),
	STORE_WAITS("store", "store-held", 1),
	STORE_WAITS("store", "store-held", 16),
	STORE_WAITS("store", "store-held", 64),
	STORE_WAITS("store-submit", "store-submit-held", 1),
	{ "cycle", 1000000, "store", "cycles_per_s", AT_LEAST, .limit = 1.5,
	  .other = "beanstalkd", .threads = 64, .other_threads = 64 },
	{ "notice", 300, "store", "p50_us", AT_MOST, .limit = 1000 },
	{ "notice", 300, "sqlite", "after_p50_us", AT_MOST, .limit = 1000 },
	{ "waiting", 10000000, "store", "MiB", AT_MOST, .limit = 24 },
	{ "waiting", 10000000, "store", "put_p50_us", AT_MOST, .limit = 1.5, .other = "store",
	  .other_timers = 1000 },
	{ "waiting", 10000000, "store", "take_p50_us", AT_MOST, .limit = 1.5, .other = "store",
	  .other_timers = 1000 },
};
/* clang-format on */

static bool find_value(const struct table *table, const struct bar *bar, const char *subject,
                       uint32_t timers, unsigned threads, double *ret_value)
{
	const struct cell *cell =
		table_find(table, bar->workload, subject, timers > 0 ? timers : bar->timers,
	                   threads > 0 ? threads : 1);
	struct spread spread;

	if (!cell || !cell_spread(cell, bar->value, &spread))
		return false;
	*ret_value = spread.median;
	return true;
}

void report_bars(const struct table *table)
{
	bool printed_head = false;

	for (const struct bar *bar = bars; bar < bars + sizeof(bars) / sizeof(bars[0]); bar++) {
		double ours, theirs = 1, hop = 0, measured;
		char says[96];
		bool met;

		if (!find_value(table, bar, bar->subject, 0, bar->threads, &ours) ||
		    (bar->other && !find_value(table, bar, bar->other, bar->other_timers,
		                               bar->other_threads, &theirs)) ||
		    (bar->floor && !find_value(table, bar, bar->floor, 0, 1, &hop)))
			continue;
		theirs = hop > theirs ? hop : theirs; /* the peer, and what a hop adds over it */
		if (!printed_head)
			(void)printf("\n%-80s%9s%12s\n", "bar", "measured", "wanted");
		printed_head = true;
		measured = bar->kind == MORE ? ours - theirs : ours / theirs;
		met = bar->kind == AT_LEAST ? measured >= bar->limit : measured <= bar->limit;
		(void)snprintf(says, sizeof(says), "%s %u, %s of %s%s%s%s%s", bar->workload,
		               bar->timers, bar->value, bar->subject,
		               !bar->other         ? ""
		               : bar->kind == MORE ? " over "
		                                   : " against ",
		               bar->other ? bar->other : "", bar->floor ? " or " : "",
		               bar->floor ? bar->floor : "");
		if (bar->threads > 0)
			(void)snprintf(says + strlen(says), sizeof(says) - strlen(says),
			               ", %u threads", bar->threads);
		(void)printf("%-80s%9.4g  %s %6.4g  %s\n", says, measured,
		             bar->kind == AT_LEAST ? ">=" : "<=", bar->limit,
		             met ? "met" : "NOT MET");
	}
}
