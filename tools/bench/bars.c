/* SPDX-License-Identifier: MIT */
/*
 * timerhub's own targets ("bars") on two cores. Each compares a value of timerhub with a limit, or
 * with a factor times another value of the same run.
 */
#include <stdio.h>
#include <string.h>

#include "report.h"

enum bar_kind {
	AT_MOST,
	AT_LEAST,
	MORE /* at most `limit` more than the other value */
};

/* A value of the table. */
struct point {
	const char *workload;
	const char *subject; /* "best": the best subject except timerhub and the floor */
	uint32_t timers;
	unsigned threads;
	const char *value;
};

struct bar {
	const char *says;
	struct point ours;
	struct point theirs; /* if it has no workload, the limit is absolute */
	enum bar_kind kind;
	double limit;
};

#define TENK 10000
#define MILLION 1000000
#define BUSY 4000000
#define OURS(workload, timers, threads, value)                                                     \
	{                                                                                          \
		workload, "timerhub", timers, threads, value                                       \
	}
#define THEIRS(workload, subject, timers, threads, value)                                          \
	{                                                                                          \
		workload, subject, timers, threads, value                                          \
	}
#define NOBODY                                                                                     \
	{                                                                                          \
		NULL, NULL, 0, 0, NULL                                                             \
	}

#define REFRESH_FLOOR(n, limit)                                                                    \
	{                                                                                          \
		"refresh " #n ", against the floor", OURS("refresh", n, 1, "ns_per_op"),           \
			THEIRS("refresh", "floor", n, 1, "ns_per_op"), AT_MOST, limit              \
	}
#define REFRESH_PEER(peer, times)                                                                  \
	{                                                                                          \
		"refresh 1000000, " peer "'s time against ours",                                   \
			THEIRS("refresh", peer, MILLION, 1, "ns_per_op"),                          \
			OURS("refresh", MILLION, 1, "ns_per_op"), AT_LEAST, times                  \
	}
#define CROSS_BEST(name, n, threads, limit)                                                        \
	{                                                                                          \
		name ", " #threads " threads, rate against the best other's",                      \
			OURS(name, n, threads, "mops"), THEIRS(name, "best", n, threads, "mops"),  \
			AT_LEAST, limit                                                            \
	}
#define EXPIRE(name, subject)                                                                      \
	{                                                                                          \
		name ", CPU of " subject " against libev's",                                       \
			THEIRS(name, subject, MILLION, 1, "cpu_ns_per_op"),                        \
			THEIRS(name, "libev", MILLION, 1, "cpu_ns_per_op"), AT_MOST, 0.55          \
	}
#define LATE_AGAINST(value, limit)                                                                 \
	{                                                                                          \
		"lateness, " value " against timerfd-loop's", OURS("lateness", TENK, 1, value),    \
			THEIRS("lateness", "timerfd-loop", TENK, 1, value), AT_MOST, limit         \
	}

#define SERVER_BEST(subject, threads)                                                              \
	{                                                                                          \
		"server, " #threads " threads, CPU of " subject " against the best other's",       \
			THEIRS("server", subject, 100000, threads, "cpu_ns_per_op"),               \
			THEIRS("server", "best", 100000, threads, "cpu_ns_per_op"), AT_MOST, 1     \
	}
#define BEAT(name, timers)                                                                         \
	{                                                                                          \
		name " " #timers ", owner's wake-ups a second",                                    \
			OURS(name, timers, 1, "wakeups_per_s"), NOBODY, AT_MOST, 5                 \
	}
#define BEAT_CPU(timers, limit)                                                                    \
	{                                                                                          \
		"beat " #timers ", owner's CPU, us a second",                                      \
			OURS("beat", timers, 1, "owner_cpu_us"), NOBODY, AT_MOST, limit            \
	}
#define EARLY(what, workload, subject, timers)                                                     \
	{                                                                                          \
		what ", timers early", THEIRS(workload, subject, timers, 1, "early"), NOBODY,      \
			AT_MOST, 0                                                                 \
	}
#define DURABLE(subject, threads, value) THEIRS("durable", subject, MILLION, threads, value)
#define DURABLE_SYNCS(loop, name)                                                                  \
	{                                                                                          \
		"durable, 64 threads, puts a second against " name " x batch",                     \
			DURABLE("journal", 64, "syncs_per_s"), DURABLE(loop, 1, "syncs_per_s"),    \
			AT_LEAST, 0.7                                                              \
	}
#define CYCLE(threads, limit)                                                                      \
	{                                                                                          \
		"cycle, " #threads " threads, rate against beanstalkd's",                          \
			THEIRS("cycle", "journal", MILLION, threads, "cycles_per_s"),              \
			THEIRS("cycle", "beanstalkd", MILLION, threads, "cycles_per_s"), AT_LEAST, \
			limit                                                                      \
	}
#define JOURNAL_LATE(value)                                                                        \
	{                                                                                          \
		"lateness, " value " of the journal against timers'",                              \
			THEIRS("lateness", "journal-take", TENK, 1, value),                        \
			OURS("lateness", TENK, 1, value), AT_MOST, 1.3                             \
	}

/* CPU time, which depends least on the machine's other processes. */
#define LOOP_SERVER(subject)                                                                       \
	{ "server 1000, CPU ns of " subject " over touching the records",                          \
	  THEIRS("server", subject, 1000, 1, "cpu_ns_per_op"),                                     \
	  THEIRS("server", "touch", 1000, 1, "cpu_ns_per_op"), MORE, 3 },                          \
	{                                                                                          \
		"server 100000, CPU of " subject " against libev's",                               \
			THEIRS("server", subject, 100000, 1, "cpu_ns_per_op"),                     \
			THEIRS("server", "libev", 100000, 1, "cpu_ns_per_op"), AT_MOST, 0.25       \
	}
#define LOOP_OVER(workload, subject, timers, ns)                                                   \
	{                                                                                          \
		workload " " #timers ", CPU ns of " subject " over touching the records",          \
			THEIRS(workload, subject, timers, 1, "cpu_ns_per_op"),                     \
			THEIRS(workload, "touch", timers, 1, "cpu_ns_per_op"), MORE, ns            \
	}
#define LOOP_EXPIRE(subject)                                                                       \
	{                                                                                          \
		"loop-expire, CPU of " subject " against libev's",                                 \
			THEIRS("loop-expire", subject, MILLION, 1, "cpu_ns_per_op"),               \
			THEIRS("loop-expire", "libev", MILLION, 1, "cpu_ns_per_op"), AT_MOST, 0.4  \
	}
#define LOOP_LATE(value)                                                                           \
	{                                                                                          \
		"lateness, " value " of timerhub-loop-alone against timerfd-loop's",               \
			THEIRS("lateness", "timerhub-loop-alone", TENK, 1, value),                 \
			THEIRS("lateness", "timerfd-loop", TENK, 1, value), AT_MOST, 1.0           \
	}
#define LOOP(subject)                                                                              \
	LOOP_SERVER(subject), LOOP_OVER("loop-refresh", subject, 10000, 3),                        \
		LOOP_OVER("loop-request", subject, 10000, 4),                                      \
		LOOP_OVER("loop-request-later", subject, 10000, 6), LOOP_EXPIRE(subject),          \
		EARLY("lateness of " subject, "lateness", subject, TENK)

static const struct bar bars[] = {
	LOOP("timerhub-loop-alone"),
	LOOP("timerhub-loop"),
	LOOP_LATE("p50_us"),
	LOOP_LATE("p99_us"),
	REFRESH_FLOOR(10000, 1.2),
	REFRESH_FLOOR(1000000, 1.35),
	REFRESH_FLOOR(10000000, 1.35),
	REFRESH_PEER("libev", 2.5),
	REFRESH_PEER("libuv", 10),
	REFRESH_PEER("libevent", 10),
	{ "refresh 1000000, 2 threads, rate against one's",
	  OURS("refresh", MILLION, 1, "ns_per_op"), OURS("refresh", MILLION, 2, "ns_per_op"),
	  AT_LEAST, 1.8 },
	{ "neighbours 1000000, against the floor", OURS("neighbours", MILLION, 2, "ns_per_op"),
	  THEIRS("neighbours", "floor", MILLION, 2, "ns_per_op"), AT_MOST, 1.2 },
	{ "churn 1000000, CPU against the heap's", OURS("churn", MILLION, 1, "cpu_ns_per_op"),
	  THEIRS("churn", "heap", MILLION, 1, "cpu_ns_per_op"), AT_MOST, 1.8 },
	{ "churn 1000000, the caller's against the heap's", OURS("churn", MILLION, 1, "caller_ns"),
	  THEIRS("churn", "heap", MILLION, 1, "caller_ns"), AT_MOST, 1.4 },
	{ "request, the caller's ns a pair", OURS("request", TENK, 1, "caller_ns"), NOBODY, AT_MOST,
	  90 },
	{ "request, 2 threads, the caller's ns a pair", OURS("request", TENK, 2, "caller_ns"),
	  NOBODY, AT_MOST, 90 },
	{ "request, 2 threads, the heap's time against ours",
	  THEIRS("request", "heap", TENK, 2, "ns_per_op"), OURS("request", TENK, 2, "ns_per_op"),
	  AT_LEAST, 1.5 },
	{ "request, wakes in a million pairs", OURS("request", TENK, 1, "wakes_per_million"),
	  NOBODY, AT_MOST, 0 },
	EXPIRE("burst", "timerhub"),
	EXPIRE("stream", "timerhub"),
	{ "push-and-take, against the heap's", OURS("push-and-take", MILLION, 1, "ns_per_op"),
	  THEIRS("push-and-take", "heap", MILLION, 1, "ns_per_op"), AT_MOST, 0.6 },
	{ "push-and-take, allocations", OURS("push-and-take", MILLION, 1, "allocations_per_op"),
	  NOBODY, AT_MOST, 0 },
	CROSS_BEST("cross", MILLION, 2, 1.3),
	CROSS_BEST("cross", MILLION, 4, 1.3),
	{ "cross, rate of 16 threads against 2's", OURS("cross", MILLION, 16, "mops"),
	  OURS("cross", MILLION, 2, "mops"), AT_LEAST, 0.8 },
	CROSS_BEST("cross-busy", BUSY, 2, 1.3),
	CROSS_BEST("cross-busy", BUSY, 4, 1.3),
	{ "tail, p99.9 against the heap's", OURS("tail", BUSY, 2, "p99.9_ns"),
	  THEIRS("tail", "heap", BUSY, 2, "p99.9_ns"), AT_MOST, 0.1 },
	{ "tail, p99.9 against the best other's", OURS("tail", BUSY, 2, "p99.9_ns"),
	  THEIRS("tail", "best", BUSY, 2, "p99.9_ns"), AT_MOST, 1.0 },
	EARLY("lateness", "lateness", "timerhub", TENK),
	EARLY("lateness with spin_ns", "lateness", "timerhub-spin", TENK),
	EARLY("beat-late", "beat-late", "timerhub", 100000),
	LATE_AGAINST("p50_us", 0.9),
	LATE_AGAINST("p99_us", 1.1),
	{ "lateness with spin_ns, p50 against timerfd-loop's",
	  THEIRS("lateness", "timerhub-spin", TENK, 1, "p50_us"),
	  THEIRS("lateness", "timerfd-loop", TENK, 1, "p50_us"), AT_MOST, 0.5 },
	{ "memory 1000000, bytes a timer", OURS("memory", MILLION, 1, "bytes"), NOBODY, AT_MOST,
	  72 },
	{ "memory 10000000, bytes a timer", OURS("memory", 10 * MILLION, 1, "bytes"), NOBODY,
	  AT_MOST, 72 },
	{ "idle, system calls", OURS("idle", MILLION, 1, "system_calls"), NOBODY, AT_MOST, 0 },
	{ "idle, context switches", OURS("idle", MILLION, 1, "switches"), NOBODY, AT_MOST, 0 },
	/* The owner may wake once for every 8,192 entries that wait in the inbox. */
	{ "idle, wakes of the owner by 10^5 later arms", OURS("idle", MILLION, 1, "arms_woke"),
	  NOBODY, AT_MOST, 13 },
	{ "wakes by submitters", OURS("wakes", 20000, 1, "submit_wakes"), NOBODY, AT_MOST, 20 },
	BEAT("beat", 1000),
	BEAT("beat", 10000),
	BEAT("beat", 100000),
	BEAT("beat-cancel", 10000),
	BEAT_CPU(1000, 1750),
	BEAT_CPU(10000, 3000),
	BEAT_CPU(100000, 4500),
	{ "batch-rearm 1000000, CPU a timer against the floor's one by one",
	  THEIRS("batch-rearm", "timerhub-many", MILLION, 1, "caller_ns"),
	  THEIRS("batch-rearm", "floor", MILLION, 1, "caller_ns"), AT_MOST, 0.6 },
	{ "batch-churn 1000000, the caller's against the heap's",
	  THEIRS("batch-churn", "timerhub-many", MILLION, 1, "caller_ns"),
	  THEIRS("batch-churn", "heap", MILLION, 1, "caller_ns"), AT_MOST, 1.0 },
	{ "batch-churn 1000000, CPU against the heap's",
	  THEIRS("batch-churn", "timerhub-many", MILLION, 1, "cpu_ns_per_op"),
	  THEIRS("batch-churn", "heap", MILLION, 1, "cpu_ns_per_op"), AT_MOST, 1.6 },
	SERVER_BEST("timerhub", 1),
	SERVER_BEST("timerhub", 2),
	SERVER_BEST("timerhub-many", 1),
	SERVER_BEST("timerhub-many", 2),
	{ "durable, 64 threads, puts a second against beanstalkd's",
	  DURABLE("journal", 64, "puts_per_s"), DURABLE("beanstalkd", 64, "puts_per_s"), AT_LEAST,
	  5 },
	{ "durable, one thread's puts in flight against 64 that wait",
	  DURABLE("journal-submit", 64, "puts_per_s"), DURABLE("journal", 64, "puts_per_s"),
	  AT_LEAST, 0.8 },
	CYCLE(1, 1.3),
	CYCLE(16, 5),
	CYCLE(64, 12),
	DURABLE_SYNCS("sync-append", "tiny syncs"),
	DURABLE_SYNCS("sync-batch", "syncs of as much"),
	{ "recover 1000000, seconds with nothing cached",
	  THEIRS("recover", "journal", MILLION, 1, "cold_s"), NOBODY, AT_MOST, 2 },
	{ "recover 1000000, bytes a task beside its data and key",
	  THEIRS("recover", "journal", MILLION, 1, "bytes"), NOBODY, AT_MOST, 144 },
	{ "lateness, tasks of the journal early",
	  THEIRS("lateness", "journal-take", TENK, 1, "early"), NOBODY, AT_MOST, 0 },
	JOURNAL_LATE("p50_us"),
	JOURNAL_LATE("p99_us"),
	{ "open and close, ns", OURS("open", 10 * MILLION, 1, "ns_per_op"), NOBODY, AT_MOST, 2e6 },
};

static bool rate(const char *value)
{
	return strcmp(value, "mops") == 0;
}

static bool counts_as_other(const struct subject *subject)
{
	return strncmp(subject->name, "timerhub", 8) != 0 && strcmp(subject->name, "floor") != 0 &&
	       strcmp(subject->name, "touch") != 0;
}

static bool find_best(const struct table *table, const struct point *point, double *ret_value,
                      const char **ret_subject)
{
	bool found = false;

	for (unsigned i = 0; subjects[i]; i++) {
		const struct cell *cell = table_find(table, point->workload, subjects[i]->name,
		                                     point->timers, point->threads);
		struct spread spread;

		if (!cell || !counts_as_other(subjects[i]) ||
		    !cell_spread(cell, point->value, &spread))
			continue;
		if (found && (rate(point->value) ? spread.median <= *ret_value
		                                 : spread.median >= *ret_value))
			continue;
		*ret_value = spread.median;
		*ret_subject = subjects[i]->name;
		found = true;
	}
	return found;
}

static bool find_value(const struct table *table, const struct point *point, double *ret_value,
                       const char **ret_subject)
{
	const struct cell *cell;
	struct spread spread;

	if (strcmp(point->subject, "best") == 0)
		return find_best(table, point, ret_value, ret_subject);
	cell = table_find(table, point->workload, point->subject, point->timers, point->threads);
	if (!cell || !cell_spread(cell, point->value, &spread))
		return false;
	*ret_value = spread.median;
	*ret_subject = point->subject;
	return true;
}

static void report_bar(const struct table *table, const struct bar *bar, bool *printed_head)
{
	double ours, theirs = 1, ratio;
	const char *subject = "";
	bool met;

	if (!find_value(table, &bar->ours, &ours, &subject))
		return;
	subject = "";
	if (bar->theirs.workload && !find_value(table, &bar->theirs, &theirs, &subject))
		return;
	if (!*printed_head)
		(void)printf("\n%-64s%12s%14s\n", "bar", "measured", "wanted");
	*printed_head = true;
	ratio = bar->kind == MORE ? ours - theirs : ours / theirs;
	met = bar->kind == AT_LEAST ? ratio >= bar->limit : ratio <= bar->limit;
	(void)printf("%-64s%12.4g  %s %8.4g  %s", bar->says, ratio,
	             bar->kind == AT_LEAST ? ">=" : "<=", bar->limit, met ? "met" : "NOT MET");
	if (bar->theirs.workload && strcmp(bar->theirs.subject, "best") == 0)
		(void)printf(" (%s)", subject);
	(void)printf("\n");
}

void report_bars(const struct table *table)
{
	bool printed_head = false;

	for (unsigned i = 0; i < sizeof(bars) / sizeof(bars[0]); i++)
		report_bar(table, &bars[i], &printed_head);
}
