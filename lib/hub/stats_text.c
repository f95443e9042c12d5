/* SPDX-License-Identifier: MIT */
/*
 * Writes the statistics of a hub as text: a line "name value" for each counter. Pure. Tested by
 * tests/unit/test_stats_text.c.
 */
#include <errno.h>
#include <timerhub.h>

#include "base/text.h"

static void text_add_line(struct text *text, const char *name, uint64_t number)
{
	text_add(text, name);
	text_add_char(text, ' ');
	text_add_number(text, number);
	text_add_char(text, '\n');
}

static void text_add_counters(struct text *text, const struct timerhub_stats *stats)
{
	const struct {
		const char *name;
		uint64_t value;
	} lines[] = {
		{ "armed", stats->armed },
		{ "refiled", stats->refiled },
		{ "cancelled", stats->cancelled },
		{ "expired", stats->expired },
		{ "delivered", stats->delivered },
		{ "overruns", stats->overruns },
		{ "live", stats->live },
		{ "live_max", stats->live_max },
		{ "inbox_max", stats->inbox_max },
		{ "owner_wakeups", stats->owner_wakeups },
		{ "submit_wakes", stats->submit_wakes },
		{ "queue_signals", stats->queue_signals },
		{ "cascaded", stats->cascaded },
		{ "clock_jumps", stats->clock_jumps },
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		text_add_line(text, lines[i].name, lines[i].value);
}

static void text_add_sleeper(struct text *text, uint32_t sleeper)
{
	text_add(text, "sleeper ");
	if (sleeper == TIMERHUB_SLEEPER_URING)
		text_add(text, "io_uring");
	else
		text_add(text, sleeper == TIMERHUB_SLEEPER_POLL ? "ppoll" : "none");
	text_add_char(text, '\n');
}

/* Returns the upper bound of the lateness of the `rank` least late expiries, or 0 if rank is 0. */
static uint64_t lateness_below_ns(const uint64_t *buckets, uint64_t rank)
{
	unsigned i = 0;

	if (rank == 0)
		return 0;
	for (; i < TIMERHUB_LATENESS_BUCKETS - 1 && buckets[i] < rank; i++)
		rank -= buckets[i];
	return i < TIMERHUB_LATENESS_BUCKETS - 1 ? (uint64_t)2 << i : UINT64_MAX;
}

static void text_add_lateness(struct text *text, const uint64_t *buckets)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < TIMERHUB_LATENESS_BUCKETS; i++)
		count += buckets[i];
	text_add_line(text, "lateness_p50_below_ns", lateness_below_ns(buckets, count - count / 2));
	text_add_line(text, "lateness_p99_below_ns",
	              lateness_below_ns(buckets, count - count / 100));
	text_add_line(text, "lateness_max_below_ns", lateness_below_ns(buckets, count));
}

int timerhub_stats_text(const struct timerhub_stats *stats, char *buffer, size_t bytes)
{
	struct text text = { .buffer = buffer, .bytes = bytes };

	if (!stats || (!buffer && bytes > 0))
		return -EINVAL;
	text_add_counters(&text, stats);
	text_add_sleeper(&text, stats->sleeper);
	text_add_lateness(&text, stats->lateness);
	text_end(&text);
	return (int)text.length;
}
