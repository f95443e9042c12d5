/* SPDX-License-Identifier: MIT */
/*
 * Writes the statistics of hubs as text, in two formats. Lines "name value" of one hub are for
 * people and logs. OpenMetrics of any number of hubs is for a monitoring system. timerhub-top is
 * compiled with this file too, and writes the statistics of the hubs that it watches.
 *
 * Tested by tests/unit/test_stats_text.c, tests/unit/test_stats_metrics.c and
 * tests/tools/test_top.py.
 */
#include "metrics/stats_text.h"

#include <errno.h>

#define COUNTER "counter"
#define GAUGE "gauge"
#define PREFIX "timerhub_" /* the prefix of the metrics' names, which lines leave out */

/*
 * Describes a metric that has one number per hub, and says which field of struct timerhub_stats
 * holds the number.
 */
struct number_family {
	struct metrics_family family;
	const char *line; /* what the number is called in a line */
	size_t offset;
	unsigned decimals; /* how many digits of the number are decimals of the family's unit */
};

#define NUMBER(type, member, help)                                                                 \
	{                                                                                          \
		{ PREFIX #member, type, NULL, help }, #member,                                     \
			offsetof(struct timerhub_stats, member), 0                                 \
	}
/* Describes a time, which is in ns in struct timerhub_stats, but in seconds in OpenMetrics. */
#define SECONDS(type, name, member, help)                                                          \
	{                                                                                          \
		{ PREFIX name "_seconds", type, "seconds", help }, #member,                        \
			offsetof(struct timerhub_stats, member), 9                                 \
	}

static const struct number_family numbers[] = {
	NUMBER(COUNTER, armed, "Timers armed."),
	NUMBER(COUNTER, refiled, "Times that the owner rescheduled a timer with a later deadline."),
	/*
	 * A gauge, because it can become smaller: it is computed from three counters that are read
	 * at different moments.
	 */
	NUMBER(GAUGE, cancelled, "Timers cancelled."),
	NUMBER(COUNTER, expired, "Deadlines that the owner put into a queue."),
	NUMBER(COUNTER, delivered, "Events that consumers took."),
	NUMBER(COUNTER, overruns, "Periods folded into the count of another event."),
	NUMBER(GAUGE, live, "Timers live now."),
	NUMBER(GAUGE, live_max, "Most timers live at once."),
	NUMBER(GAUGE, inbox_max, "Most submissions that the owner found waiting in one pass."),
	NUMBER(COUNTER, owner_wakeups, "Times that the owner slept and woke."),
	NUMBER(COUNTER, submit_wakes, "Times that a caller woke the owner."),
	NUMBER(COUNTER, queue_signals, "Times that the owner made a queue's descriptor readable."),
	NUMBER(COUNTER, cascaded, "Timers moved from one level of the wheel to a lower one."),
	NUMBER(COUNTER, clock_jumps, "Times that the owner detected a change of the wall clock."),
	NUMBER(COUNTER, slow_callbacks, "Slow callbacks."),
	SECONDS(COUNTER, "slow_callback", slow_sum_ns, "Time that slow callbacks took."),
	NUMBER(GAUGE, waiting, "Events that wait in queues now."),
	SECONDS(GAUGE, "untaken", untaken_ns, "Longest time that events wait untaken in a queue."),
};

#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static const struct metrics_family sleeper_family = {
	PREFIX "sleeper", "info", NULL, "What the owner sleeps on; none on a manual hub."
};

static const struct metrics_family lateness_family = {
	PREFIX "lateness_seconds", "histogram", "seconds",
	"Time at which a timer was delivered to its queue, minus the deadline."
};

static const struct metrics_family delivery_lateness_family = {
	PREFIX "delivery_lateness_seconds", "histogram", "seconds",
	"Time at which a call took an event from its queue, minus the deadline."
};

/* Returns the member of `stats` at the offset in `number`. */
static uint64_t number_of(const struct number_family *number, const struct timerhub_stats *stats)
{
	const void *value = (const char *)stats + number->offset;

	return *(const uint64_t *)value;
}

static const char *sleeper_name(uint32_t sleeper)
{
	if (sleeper == TIMERHUB_SLEEPER_URING)
		return "io_uring";
	return sleeper == TIMERHUB_SLEEPER_POLL ? "ppoll" : "none";
}

/* ---- lines ---- */

static void text_add_line(struct text *text, const char *name, uint64_t number)
{
	text_add(text, name);
	text_add_char(text, ' ');
	text_add_decimal(text, number, 0);
	text_add_char(text, '\n');
}

/*
 * Returns an upper bound, in ns, for how late the `rank` most punctual expiries in `buckets` were,
 * or 0 if `rank` is 0.
 */
static uint64_t lateness_below_ns(const uint64_t *buckets, uint64_t rank)
{
	unsigned i = 0;

	if (rank == 0)
		return 0;
	for (; i < TIMERHUB_LATENESS_BUCKETS - 1 && buckets[i] < rank; i++)
		rank -= buckets[i];
	return i < TIMERHUB_LATENESS_BUCKETS - 1 ? (uint64_t)2 << i : UINT64_MAX;
}

static void text_add_bound(struct text *text, const char *name, const char *which,
                           const uint64_t *buckets, uint64_t rank)
{
	text_add(text, name);
	text_add_line(text, which, lateness_below_ns(buckets, rank));
}

/*
 * Adds three lines with upper bounds for how late events were: half of them, 99 % of them, and all.
 */
static void text_add_lateness(struct text *text, const char *name, const uint64_t *buckets)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < TIMERHUB_LATENESS_BUCKETS; i++)
		count += buckets[i];
	text_add_bound(text, name, "_p50_below_ns", buckets, count - count / 2);
	text_add_bound(text, name, "_p99_below_ns", buckets, count - count / 100);
	text_add_bound(text, name, "_max_below_ns", buckets, count);
}

int timerhub_stats_text(const struct timerhub_stats *stats, char *buffer, size_t bytes)
{
	struct text text = { .buffer = buffer, .bytes = bytes };

	if (!stats || (!buffer && bytes > 0))
		return -EINVAL;
	for (size_t i = 0; i < NUMBERS; i++)
		text_add_line(&text, numbers[i].line, number_of(&numbers[i], stats));
	text_add(&text, "sleeper ");
	text_add(&text, sleeper_name(stats->sleeper));
	text_add_char(&text, '\n');
	text_add_lateness(&text, "lateness", stats->lateness);
	text_add_lateness(&text, "delivery_lateness", stats->delivery_lateness);
	text_end(&text);
	return (int)text.length;
}

/* ---- OpenMetrics ---- */

/* Adds a sample that says how the owner thread of a hub sleeps. */
static void add_sleeper(struct text *text, const struct labelled_stats *hub)
{
	text_add(text, sleeper_family.name);
	text_add(text, "_info{");
	text_add(text, hub->labels);
	text_add(text, *hub->labels ? ",sleeper=\"" : "sleeper=\"");
	text_add(text, sleeper_name(hub->stats.sleeper));
	text_add(text, "\"} 1\n");
}

void stats_metrics_add(struct text *text, const struct labelled_stats *hubs, size_t count)
{
	for (size_t i = 0; i < NUMBERS; i++) {
		metrics_add_family(text, &numbers[i].family);
		for (size_t hub = 0; hub < count; hub++)
			metrics_add_sample(text, &numbers[i].family, hubs[hub].labels,
			                   number_of(&numbers[i], &hubs[hub].stats),
			                   numbers[i].decimals);
	}
	metrics_add_family(text, &sleeper_family);
	for (size_t hub = 0; hub < count; hub++)
		add_sleeper(text, &hubs[hub]);
	metrics_add_family(text, &lateness_family);
	for (size_t hub = 0; hub < count; hub++)
		metrics_add_histogram(text, &lateness_family, hubs[hub].labels,
		                      hubs[hub].stats.lateness);
	metrics_add_family(text, &delivery_lateness_family);
	for (size_t hub = 0; hub < count; hub++)
		metrics_add_histogram(text, &delivery_lateness_family, hubs[hub].labels,
		                      hubs[hub].stats.delivery_lateness);
}

int timerhub_stats_metrics(const struct timerhub_stats *stats, char *buffer, size_t bytes)
{
	struct text text = { .buffer = buffer, .bytes = bytes };
	struct labelled_stats hub = { .labels = "" };

	if (!stats || (!buffer && bytes > 0))
		return -EINVAL;
	hub.stats = *stats;
	stats_metrics_add(&text, &hub, 1);
	metrics_end(&text);
	return (int)text.length;
}
