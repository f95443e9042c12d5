/* SPDX-License-Identifier: MIT */
/*
 * Writes the counters of all hubs and loops of a process as OpenMetrics text, for Prometheus. Hubs
 * get the metrics that timerhub_stats_metrics(3) writes for a program's own hubs, and some more
 * about queues, threads and slow callbacks. Loops have metrics of their own.
 */
#include <inttypes.h>
#include <metrics/stats_text.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outputs.h"

/* The room for the labels of one sample. Escapes make a label at most twice as long as its text. */
#define LABELS_BYTES (2 * (FUNCTION_NAME_BYTES + THREAD_TEXT_BYTES + BOARD_TEXT_BYTES) + 128)

struct labels {
	char text[LABELS_BYTES];
};

static void add_label(struct labels *labels, const char *name, const char *value)
{
	struct text text = { labels->text, LABELS_BYTES, strlen(labels->text) };

	metrics_add_label(&text, name, value);
	text_end(&text);
}

static void add_number(struct labels *labels, const char *name, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	add_label(labels, name, text);
}

static struct labels labels_of(const struct reading *reading)
{
	struct labels labels = { "" };

	add_number(&labels, is_loop(&reading->about) ? "loop" : "hub", reading->about.serial);
	if (!is_loop(&reading->about))
		add_label(&labels, "thread", reading->about.thread_name);
	return labels;
}

/*
 * Writes one sample of a metric. If the metric has a unit, that is seconds, and `number` is in
 * nanoseconds.
 */
static void add_sample(struct text *text, const struct metrics_family *family,
                       const struct labels *labels, uint64_t number)
{
	metrics_add_sample(text, family, labels->text, number, family->unit ? 9 : 0);
}

static void write_counters(struct text *text, const struct watch *watch, enum board_kind kind)
{
	for (const struct counter *counter = counters_of(kind); counter->name; counter++) {
		if (!counter->family.name)
			continue;
		metrics_add_family(text, &counter->family);
		for (unsigned i = 0; i < watch->count; i++) {
			const struct reading *now = &watch->now[i];
			struct labels labels = labels_of(now);

			if (is_loop(&now->about) == (kind == BOARD_LOOP))
				add_sample(text, &counter->family, &labels,
				           counter_value(counter, now));
		}
	}
}

/*
 * Writes for each hub the metrics that timerhub_stats_metrics(3) writes for a program's own hubs.
 */
static void write_stats(struct text *text, const struct watch *watch)
{
	static struct labelled_stats stats[TARGET_HUBS_MAX];
	static struct labels labels[TARGET_HUBS_MAX];
	unsigned count = 0;

	for (unsigned i = 0; i < watch->count; i++) {
		if (is_loop(&watch->now[i].about))
			continue;
		labels[count] = labels_of(&watch->now[i]);
		stats[count].labels = labels[count].text;
		stats[count++].stats = watch->now[i].stats;
	}
	stats_metrics_add(text, stats, count);
}

static void write_loops(struct text *text, const struct watch *watch)
{
	static const struct metrics_family lateness = {
		"timerhub_loop_lateness_seconds", "histogram", "seconds",
		"The turn's reading of the clock minus the deadline."
	};
	bool any = false;

	for (unsigned i = 0; i < watch->count; i++)
		any |= is_loop(&watch->now[i].about);
	if (!any)
		return;
	write_counters(text, watch, BOARD_LOOP);
	metrics_add_family(text, &lateness);
	for (unsigned i = 0; i < watch->count; i++)
		if (is_loop(&watch->now[i].about))
			metrics_add_histogram(text, &lateness, labels_of(&watch->now[i]).text,
			                      watch->now[i].stats.lateness);
}

static void write_untaken(struct text *text, const struct watch *watch)
{
	static const struct metrics_family untaken = {
		"timerhub_queue_untaken_seconds", "gauge", "seconds",
		"For how long nobody has taken from a queue in which events wait."
	};

	metrics_add_family(text, &untaken);
	for (unsigned i = 0; i < watch->count; i++)
		for (uint32_t j = 0; j < watch->now[i].queues_listed; j++) {
			struct labels labels = labels_of(&watch->now[i]);

			add_number(&labels, "queue", watch->now[i].queues[j].index);
			add_sample(text, &untaken, &labels, watch->now[i].queues[j].untaken_ns);
		}
}

static void write_slow(struct text *text, const struct watch *watch)
{
	static const struct metrics_family families[] = {
		{ "timerhub_slow_function_calls", "counter", NULL,
		  "Callbacks of this function that were slow." },
		{ "timerhub_slow_function_seconds", "counter", "seconds",
		  "How long the slow callbacks of this function took together." },
	};

	for (unsigned k = 0; k < 2; k++) {
		metrics_add_family(text, &families[k]);
		for (unsigned i = 0; i < watch->count; i++)
			for (unsigned j = 0; j < watch->now[i].slow_count; j++) {
				const struct slow_reading *slow = &watch->now[i].slow[j];
				struct labels labels = labels_of(&watch->now[i]);

				add_label(&labels, "function",
				          function_name(watch->names, slow->fn).text);
				add_sample(text, &families[k], &labels,
				           k == 0 ? slow->count : slow->sum_ns);
			}
	}
}

/*
 * A thread that dispatches queues of two hubs can have two rows. Returns true for the first of
 * them, so that the thread's times are written only once.
 */
static bool is_first_row(const struct runnings *runnings, unsigned row)
{
	for (unsigned i = 0; i < row; i++)
		if (runnings->rows[i].thread.tid == runnings->rows[row].thread.tid)
			return false;
	return true;
}

static void write_threads(struct text *text, const struct watch *watch)
{
	enum { IN_CALLBACK, RAN, WAITED, FAMILIES };
	static const struct metrics_family families[FAMILIES] = {
		{ "timerhub_thread_in_callback_seconds", "gauge", "seconds",
		  "For how long a thread has been inside its callback; 0 outside callbacks." },
		{ "timerhub_thread_cpu_seconds", "counter", "seconds",
		  "How long a thread has run on a CPU." },
		{ "timerhub_thread_cpu_wait_seconds", "counter", "seconds",
		  "How long a thread has waited for a CPU." },
	};

	for (unsigned k = 0; k < FAMILIES; k++) {
		metrics_add_family(text, &families[k]);
		for (unsigned i = 0; i < watch->running->count; i++) {
			const struct running *running = &watch->running->rows[i];
			const struct thread *thread = &running->thread;
			uint64_t inside_ns = running->cell.fn != 0 ? running->for_ns : 0;
			uint64_t values[] = { inside_ns, thread->ran_ns, thread->waited_ns };
			struct labels labels = { "" };

			if (!is_first_row(watch->running, i) ||
			    (k == WAITED && !thread->has_waited_ns))
				continue;
			add_number(&labels, "tid", (uint64_t)thread->tid);
			add_label(&labels, "name", thread->name);
			if (k == IN_CALLBACK)
				add_label(&labels, "function", running->function.text);
			add_sample(text, &families[k], &labels, values[k]);
		}
	}
}

int metrics_print(const struct watch *watch)
{
	struct text text = { .length = 0 };
	char *larger = NULL;

	/*
	 * Write into a buffer of the length that the last try has found, until the text fits. It
	 * can need more than two tries, because the names of functions can change in between.
	 */
	while (text.length >= text.bytes) {
		larger = realloc(text.buffer, text.length + 1);
		if (!larger)
			break;
		text = (struct text){ .buffer = larger, .bytes = text.length + 1 };
		write_untaken(&text, watch);
		write_slow(&text, watch);
		write_threads(&text, watch);
		write_stats(&text, watch);
		write_counters(&text, watch, BOARD_HUB);
		write_loops(&text, watch);
		metrics_end(&text);
	}
	if (larger)
		(void)fwrite(text.buffer, 1, text.length, stdout);
	free(text.buffer);
	return larger ? 0 : -1;
}
