/* SPDX-License-Identifier: MIT */
/*
 * Writes the counters of all hubs as OpenMetrics text. See metrics.h. The text has the metric
 * families of timerhub_stats_metrics(), with labels that distinguish the hubs. The text also has
 * three families that timerhub_stats_metrics() lacks: timerhub_inbox, timerhub_outbox and
 * timerhub_timers_max.
 */
#include "metrics.h"

#include <inttypes.h>
#include <metrics/stats_text.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* size of a hub's labels in bytes; an escape makes a label at most twice as long as its text */
#define LABELS_BYTES (2 * BOARD_TEXT_BYTES + 64)

static const struct metrics_family extras[] = {
	{ "timerhub_inbox", "gauge", NULL, "Entries in the inbox that the owner has not read." },
	{ "timerhub_outbox", "gauge", NULL, "Expiries that no consumer has taken yet." },
	{ "timerhub_timers_max", "gauge", NULL, "Largest possible number of live timers." },
};

#define EXTRAS (sizeof(extras) / sizeof(extras[0]))

static const struct {
	struct metrics_family family;
	size_t at; /* offset of the number in struct reading */
	unsigned decimals;
} of_loops[] = {
	{ { "timerhub_loop_added", "gauge", NULL, "Timeouts that are added to the loop." },
	  offsetof(struct reading, added),
	  0 },
	{ { "timerhub_loop_turns", "counter", NULL, "Turns of the loop." },
	  offsetof(struct reading, turns),
	  0 },
	{ { "timerhub_loop_callbacks", "counter", NULL, "Callbacks that the turns have called." },
	  offsetof(struct reading, callbacks),
	  0 },
	{ { "timerhub_loop_empty_wakes", "counter", NULL,
	    "Turns at which a schedule entry was due and nothing was called." },
	  offsetof(struct reading, empty_wakes),
	  0 },
	{ { "timerhub_loop_refused", "counter", NULL,
	    "Calls refused because the loop belongs to another thread." },
	  offsetof(struct reading, refused),
	  0 },
	{ { "timerhub_loop_turn_max_seconds", "gauge", "seconds", "The longest turn." },
	  offsetof(struct reading, turn_max_ns),
	  9 },
};

static const struct metrics_family loop_lateness = {
	"timerhub_loop_lateness_seconds", "histogram", "seconds",
	"The turn's reading of the clock minus the deadline."
};

#define OF_LOOPS (sizeof(of_loops) / sizeof(of_loops[0]))

/* the values and labels of all hubs that the text will contain */
struct told {
	size_t count;
	struct labelled_stats hubs[TARGET_HUBS_MAX];
	char labels[TARGET_HUBS_MAX][LABELS_BYTES];
	uint64_t extras[EXTRAS][TARGET_HUBS_MAX];
	size_t loop_count;
	const struct reading *loops[TARGET_HUBS_MAX];
	char loop_labels[TARGET_HUBS_MAX][LABELS_BYTES];
};

static void write_labels(char labels[LABELS_BYTES], const char *kind,
                         const struct board_header *about)
{
	struct text text = { .buffer = labels, .bytes = LABELS_BYTES };
	char serial[24];

	(void)snprintf(serial, sizeof(serial), "%" PRIu64, about->serial);
	metrics_add_label(&text, kind, serial);
	if (about->kind != BOARD_LOOP)
		metrics_add_label(&text, "thread", about->thread_name);
	text_end(&text);
}

static struct timerhub_stats stats_of(const struct reading *reading)
{
	struct timerhub_stats stats = {
		.armed = reading->armed,
		.refiled = reading->refiled,
		.cancelled = reading->cancelled,
		.expired = reading->expired,
		.delivered = reading->delivered,
		.overruns = reading->overruns,
		.live = reading->live,
		.live_max = reading->live_max,
		.inbox_max = reading->inbox_max,
		.owner_wakeups = reading->owner_wakeups,
		.submit_wakes = reading->submit_wakes,
		.queue_signals = reading->queue_signals,
		.cascaded = reading->cascaded,
		.clock_jumps = reading->clock_jumps,
		.sleeper = (uint32_t)reading->sleeper,
		.slow_callbacks = reading->slow_callbacks,
		.slow_sum_ns = reading->slow_sum_ns,
		.waiting = reading->outbox,
		.untaken_ns = reading->untaken_ns,
	};

	memcpy(stats.lateness, reading->lateness, sizeof(stats.lateness));
	memcpy(stats.delivery_lateness, reading->delivery_lateness,
	       sizeof(stats.delivery_lateness));
	return stats;
}

static void tell_hub(struct told *told, const struct hub *hub, const struct reading *reading)
{
	const uint64_t values[EXTRAS] = { reading->inbox, reading->outbox, hub->about.timers_max };
	size_t index = told->count++;

	write_labels(told->labels[index], "hub", &hub->about);
	told->hubs[index].labels = told->labels[index];
	told->hubs[index].stats = stats_of(reading);
	for (size_t i = 0; i < EXTRAS; i++)
		told->extras[i][index] = values[i];
}

static void tell_loop(struct told *told, const struct hub *loop, const struct reading *reading)
{
	write_labels(told->loop_labels[told->loop_count], "loop", &loop->about);
	told->loops[told->loop_count++] = reading;
}

static void write_loops(const struct told *told, struct text *text)
{
	for (size_t i = 0; i < OF_LOOPS; i++) {
		metrics_add_family(text, &of_loops[i].family);
		for (size_t loop = 0; loop < told->loop_count; loop++) {
			uint64_t value;

			memcpy(&value, (const char *)told->loops[loop] + of_loops[i].at,
			       sizeof(value));
			metrics_add_sample(text, &of_loops[i].family, told->loop_labels[loop],
			                   value, of_loops[i].decimals);
		}
	}
	metrics_add_family(text, &loop_lateness);
	for (size_t loop = 0; loop < told->loop_count; loop++)
		metrics_add_histogram(text, &loop_lateness, told->loop_labels[loop],
		                      told->loops[loop]->lateness);
}

/* Write the metrics of all hubs into `buffer`. Returns the length of the whole text in bytes. */
static size_t write_told(const struct told *told, char *buffer, size_t bytes)
{
	struct text text = { .buffer = buffer, .bytes = bytes };

	stats_metrics_add(&text, told->hubs, told->count);
	for (size_t i = 0; i < EXTRAS; i++) {
		metrics_add_family(&text, &extras[i]);
		for (size_t hub = 0; hub < told->count; hub++)
			metrics_add_sample(&text, &extras[i], told->labels[hub],
			                   told->extras[i][hub], 0);
	}
	if (told->loop_count > 0)
		write_loops(told, &text);
	metrics_end(&text);
	return text.length;
}

int metrics_print(FILE *out, const struct watch *watch)
{
	const struct target *target = &watch->target;
	struct told *told = calloc(1, sizeof(*told));
	int result = -1;
	size_t length;
	char *text;

	if (!told)
		return -1;
	for (unsigned i = 0; i < target->hub_count; i++)
		if (hub_is_loop(&target->hubs[i]))
			tell_loop(told, &target->hubs[i], &watch->now[i]);
		else
			tell_hub(told, &target->hubs[i], &watch->now[i]);
	length = write_told(told, NULL, 0);
	text = malloc(length + 1);
	if (text) {
		who_metrics_print(out, watch);
		(void)write_told(told, text, length + 1);
		(void)fwrite(text, 1, length, out);
		result = 0;
	}
	free(text);
	free(told);
	return result;
}
