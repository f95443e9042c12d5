/* SPDX-License-Identifier: MIT */
/*
 * Writes the statistics of a hub as OpenMetrics text. Pure. timerhub-top is compiled with this file
 * too, for the hubs that it watches. Tested by tests/unit/test_stats_metrics.c and
 * tests/tools/test_top.py.
 */
#include "hub/stats_metrics.h"

#include <errno.h>

#define COUNTER "counter"
#define GAUGE "gauge"

/* A counter or gauge, and the offset of its value in struct timerhub_stats. */
struct number_family {
	struct metrics_family family;
	size_t offset;
};

#define NUMBER(type, member, help)                                                                 \
	{                                                                                          \
		{ "timerhub_" #member, type, NULL, help }, offsetof(struct timerhub_stats, member) \
	}

static const struct number_family numbers[] = {
	NUMBER(COUNTER, armed, "Timers armed."),
	NUMBER(COUNTER, refiled, "Times that the owner rescheduled a timer with a later deadline."),
	NUMBER(COUNTER, cancelled, "Timers cancelled."),
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
};

static const struct metrics_family sleeper_family = {
	"timerhub_sleeper", "info", NULL, "What the owner sleeps on; none on a manual hub."
};

static const struct metrics_family lateness_family = {
	"timerhub_lateness_seconds", "histogram", "seconds",
	"Time at which a timer was delivered to its queue, minus the deadline."
};

static void add_number(struct text *text, const struct number_family *number,
                       const struct labelled_stats *hub)
{
	const void *value = (const char *)&hub->stats + number->offset;

	metrics_add_sample(text, &number->family, hub->labels, *(const uint64_t *)value, 0);
}

static const char *sleeper_label(uint32_t sleeper)
{
	switch (sleeper) {
	case TIMERHUB_SLEEPER_URING:
		return "sleeper=\"io_uring\"";
	case TIMERHUB_SLEEPER_POLL:
		return "sleeper=\"ppoll\"";
	default:
		return "sleeper=\"none\"";
	}
}

static void add_sleeper(struct text *text, const struct labelled_stats *hub)
{
	text_add(text, sleeper_family.name);
	text_add(text, "_info{");
	text_add(text, hub->labels);
	text_add(text, *hub->labels ? "," : "");
	text_add(text, sleeper_label(hub->stats.sleeper));
	text_add(text, "} 1\n");
}

void stats_metrics_add(struct text *text, const struct labelled_stats *hubs, size_t count)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		metrics_add_family(text, &numbers[i].family);
		for (size_t hub = 0; hub < count; hub++)
			add_number(text, &numbers[i], &hubs[hub]);
	}
	metrics_add_family(text, &sleeper_family);
	for (size_t hub = 0; hub < count; hub++)
		add_sleeper(text, &hubs[hub]);
	metrics_add_family(text, &lateness_family);
	for (size_t hub = 0; hub < count; hub++)
		metrics_add_histogram(text, &lateness_family, hubs[hub].labels,
		                      hubs[hub].stats.lateness);
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
