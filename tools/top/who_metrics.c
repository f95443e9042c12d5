/* SPDX-License-Identifier: MIT */
/* Prints as OpenMetrics text what the page "who" shows. See metrics.h. */
#include <inttypes.h>
#include <metrics/openmetrics.h>
#include <stdio.h>

#include "metrics.h"

/* an escape makes a label at most twice as long as its text */
#define LABELS_BYTES (2 * (FUNCTION_NAME_BYTES + THREAD_TEXT_BYTES + BOARD_TEXT_BYTES) + 128)

static const struct metrics_family untaken = {
	"timerhub_queue_untaken_seconds", "gauge", "seconds",
	"For how long nobody has taken from a queue in which events wait."
};
static const struct metrics_family overdue = { "timerhub_loop_overdue_seconds", "gauge", "seconds",
	                                       "For how long a loop has been due to turn." };
static const struct metrics_family slow_calls = { "timerhub_slow_function_calls", "counter", NULL,
	                                          "Callbacks of this function that were slow." };
static const struct metrics_family slow_time = {
	"timerhub_slow_function_seconds", "counter", "seconds",
	"How long the slow callbacks of this function took together."
};
static const struct metrics_family in_callback = {
	"timerhub_thread_in_callback_seconds", "gauge", "seconds",
	"For how long a thread has been inside its callback; 0 outside callbacks."
};
static const struct metrics_family ran = { "timerhub_thread_cpu_seconds", "counter", "seconds",
	                                   "How long a thread has run on a CPU." };
static const struct metrics_family waited = { "timerhub_thread_cpu_wait_seconds", "counter",
	                                      "seconds",
	                                      "How long a thread has waited for a CPU." };

/* The labels of a sample, as they are put together. */
struct labels {
	struct text text;
	char buffer[LABELS_BYTES];
};

static void labels_begin(struct labels *labels)
{
	labels->text = (struct text){ .buffer = labels->buffer, .bytes = sizeof(labels->buffer) };
}

static void add_number(struct labels *labels, const char *name, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	metrics_add_label(&labels->text, name, text);
}

static void labels_of_hub(struct labels *labels, const struct hub *hub)
{
	labels_begin(labels);
	add_number(labels, hub_is_loop(hub) ? "loop" : "hub", hub->about.serial);
	if (!hub_is_loop(hub))
		metrics_add_label(&labels->text, "thread", hub->about.thread_name);
}

static void print_family(FILE *out, const struct metrics_family *family)
{
	char buffer[512];
	struct text text = { .buffer = buffer, .bytes = sizeof(buffer) };

	metrics_add_family(&text, family);
	text_end(&text);
	(void)fputs(buffer, out);
}

static void print_sample(FILE *out, const struct metrics_family *family, struct labels *labels,
                         uint64_t number, unsigned decimals)
{
	char buffer[LABELS_BYTES + 128];
	struct text text = { .buffer = buffer, .bytes = sizeof(buffer) };

	text_end(&labels->text);
	metrics_add_sample(&text, family, labels->buffer, number, decimals);
	text_end(&text);
	(void)fputs(buffer, out);
}

static void print_untaken(FILE *out, const struct watch *watch)
{
	struct labels labels;

	print_family(out, &untaken);
	for (unsigned i = 0; i < watch->target.hub_count; i++)
		for (uint32_t j = 0; j < watch->now[i].queue_count && j < READING_QUEUES_MAX; j++) {
			const struct queue_reading *queue = &watch->now[i].queues[j];

			labels_of_hub(&labels, &watch->target.hubs[i]);
			add_number(&labels, "queue", queue->index);
			print_sample(out, &untaken, &labels, queue->untaken_ns, 9);
		}
	print_family(out, &overdue);
	for (unsigned i = 0; i < watch->target.hub_count; i++)
		if (hub_is_loop(&watch->target.hubs[i])) {
			labels_of_hub(&labels, &watch->target.hubs[i]);
			print_sample(out, &overdue, &labels, watch->now[i].overdue_ns, 9);
		}
}

static void print_slow(FILE *out, const struct watch *watch, const struct metrics_family *family)
{
	char name[FUNCTION_NAME_BYTES];
	struct labels labels;

	print_family(out, family);
	for (unsigned i = 0; i < watch->target.hub_count; i++)
		for (unsigned j = 0; j < watch->now[i].slow_count; j++) {
			const struct slow_reading *slow = &watch->now[i].slow[j];

			function_name(watch->names, slow->fn, name);
			labels_of_hub(&labels, &watch->target.hubs[i]);
			metrics_add_label(&labels.text, "function", name);
			print_sample(out, family, &labels,
			             family == &slow_calls ? slow->count : slow->sum_ns,
			             family == &slow_calls ? 0 : 9);
		}
}

/* A thread can stand in two rows, but its times are to be printed once. */
static bool is_first_row(const struct runnings *runnings, unsigned row)
{
	for (unsigned i = 0; i < row; i++)
		if (runnings->rows[i].thread.tid == runnings->rows[row].thread.tid)
			return false;
	return true;
}

static void labels_of_thread(struct labels *labels, const struct thread *thread)
{
	labels_begin(labels);
	add_number(labels, "tid", (uint64_t)thread->tid);
	metrics_add_label(&labels->text, "name", thread->name);
}

static void print_threads(FILE *out, const struct watch *watch, const struct metrics_family *family)
{
	const struct runnings *runnings = watch->running;
	struct labels labels;

	print_family(out, family);
	for (unsigned i = 0; i < runnings->count; i++) {
		const struct thread *thread = &runnings->rows[i].thread;

		if (!is_first_row(runnings, i) || (family == &waited && !thread->has_waited_ns))
			continue;
		labels_of_thread(&labels, thread);
		print_sample(out, family, &labels,
		             family == &ran ? thread->ran_ns : thread->waited_ns, 9);
	}
}

static void print_callbacks(FILE *out, const struct watch *watch)
{
	char name[FUNCTION_NAME_BYTES];
	struct labels labels;

	print_family(out, &in_callback);
	for (unsigned i = 0; i < watch->running->count; i++) {
		const struct running *running = &watch->running->rows[i];
		bool inside = running->cell.where == TIMERHUB_IN_CALLBACK;

		if (!is_first_row(watch->running, i))
			continue;
		labels_of_thread(&labels, &running->thread);
		if (inside)
			function_name(watch->names, running->cell.fn, name);
		metrics_add_label(&labels.text, "function", inside ? name : "");
		print_sample(out, &in_callback, &labels, inside ? running->for_ns : 0, 9);
	}
}

void who_metrics_print(FILE *out, const struct watch *watch)
{
	print_untaken(out, watch);
	print_slow(out, watch, &slow_calls);
	print_slow(out, watch, &slow_time);
	print_callbacks(out, watch);
	print_threads(out, watch, &ran);
	print_threads(out, watch, &waited);
}
