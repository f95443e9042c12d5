/* SPDX-License-Identifier: MIT */
/*
 * Writes readings as JSON. See outputs.h. All texts are printable ASCII already, in which only
 * quotes and backslashes need an escape.
 */
#include <inttypes.h>
#include <stdio.h>

#include "outputs.h"

/* How many brackets are open, and whether something stands behind the last bracket that opened. */
static unsigned depth;
static bool has_members;

static void write_text(const char *text)
{
	(void)putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			(void)putchar('\\');
		(void)putchar(*text);
	}
	(void)putchar('"');
}

/* Writes what stands before a value: a comma, and the name of a member. */
static void json_name(const char *name)
{
	if (has_members)
		(void)putchar(',');
	has_members = true;
	if (name) {
		write_text(name);
		(void)putchar(':');
	}
}

void json_begin(const char *name, char bracket)
{
	json_name(name);
	(void)putchar(bracket);
	has_members = false;
	depth++;
}

void json_end(char bracket)
{
	(void)putchar(bracket);
	has_members = --depth > 0;
	if (depth == 0)
		(void)putchar('\n');
}

void json_text(const char *name, const char *text)
{
	json_name(name);
	write_text(text);
}

void json_number(const char *name, uint64_t value)
{
	json_name(name);
	(void)printf("%" PRIu64, value);
}

/* Writes a pair of a bound, which is null if there is none, and a count. */
static void json_count(uint64_t bound_ns, uint64_t count)
{
	json_name(NULL);
	if (bound_ns == UINT64_MAX)
		(void)printf("[null,%" PRIu64 "]", count);
	else
		(void)printf("[%" PRIu64 ",%" PRIu64 "]", bound_ns, count);
}

static void json_lateness(const char *name, const struct reading *now, enum late late,
                          enum period period)
{
	struct lateness lateness = lateness_of(now, late, period);

	json_begin(name, '{');
	json_number("count", lateness.count);
	if (lateness.count > 0) {
		json_number("p50_below_ns", lateness.below_ns[P50]);
		json_number("p99_below_ns", lateness.below_ns[P99]);
		json_number("max_below_ns", lateness.below_ns[LATEST]);
	}
	json_begin("buckets", '[');
	for (unsigned i = 0; i < BOARD_LATENESS_BUCKETS; i++)
		if (lateness.buckets[i] > 0)
			json_count(lateness_below_ns(i), lateness.buckets[i]);
	json_end(']');
	json_end('}');
}

static void json_queues(const struct reading *now)
{
	json_number("queue_count", now->queue_count);
	json_begin("queues", '[');
	for (uint32_t i = 0; i < now->queues_listed; i++) {
		const struct queue_reading *queue = &now->queues[i];

		json_begin(NULL, '{');
		json_number("index", queue->index);
		json_number("fd", (unsigned)queue->fd);
		json_number("delivered", queue->delivered);
		json_number("overruns", queue->overruns);
		json_number("outbox", queue->waiting);
		json_number("untaken_ns", queue->untaken_ns);
		json_end('}');
	}
	json_end(']');
}

/* Writes how many timers fall due within each time. Nothing if that is not known. */
static void json_ahead(const struct reading *now)
{
	if (now->ahead_at_ns == 0)
		return;
	json_begin("ahead", '{');
	json_number("ago_ns", reading_more(now->clock_ns, now->ahead_at_ns));
	json_begin("within", '[');
	for (unsigned i = 0; i < AHEAD_RANGES; i++)
		json_count(ahead_within_ns(i), now->ahead[i]);
	json_end(']');
	json_end('}');
}

/* Writes a hub's lateness and rates since the reading before. There must be such a reading. */
static void json_lately(const struct reading *now)
{
	uint64_t elapsed_ns = now->at_ns - now->before->at_ns;

	json_lateness("delivery_lateness_lately", now, TAKEN_LATE, LATELY);
	json_number("elapsed_ns", elapsed_ns);
	json_begin("per_second", '{');
	for (const struct counter *counter = counters_of(BOARD_HUB); counter->name; counter++)
		if (counter->row) {
			json_name(counter->name);
			(void)printf("%.3f",
			             reading_rate(counter_value(counter, now),
			                          counter_value(counter, now->before), elapsed_ns));
		}
	json_end('}');
}

static void json_slow(const struct watch *watch, const struct reading *now)
{
	json_begin("slow", '[');
	for (unsigned i = 0; i < now->slow_count; i++) {
		const struct slow_reading *slow = &now->slow[i];

		json_begin(NULL, '{');
		json_text("function", function_name(watch->names, slow->fn).text);
		json_number("count", slow->count);
		json_number("sum_ns", slow->sum_ns);
		json_number("longest_ns", slow->longest_ns);
		if (now->clock_ns > 0)
			json_number("ago_ns", reading_more(now->clock_ns, slow->last_ns));
		json_end('}');
	}
	json_end(']');
}

static void json_one(const struct watch *watch, unsigned index)
{
	const struct reading *now = &watch->now[index];
	bool loop = is_loop(&now->about);
	struct blame blame;

	json_begin(NULL, '{');
	if (!loop)
		json_text("thread", now->about.thread_name);
	json_text("clock", clock_name(&now->about));
	if (!loop)
		json_text("sleeper", sleeper_name(now->stats.sleeper));
	json_text("library", now->about.library_version);
	json_number("serial", now->about.serial);
	json_number("open_ns", reading_more(now->at_ns, now->about.opened_ns));
	for (const struct counter *counter = counters_of(now->about.kind); counter->name; counter++)
		json_number(counter->name, counter_value(counter, now));
	if (!loop)
		json_queues(now);
	json_ahead(now);
	json_lateness("lateness", now, TOLD_LATE, SINCE_OPEN);
	if (!loop)
		json_lateness("delivery_lateness", now, TAKEN_LATE, SINCE_OPEN);
	if (now->before)
		json_lateness("lateness_lately", now, TOLD_LATE, LATELY);
	if (now->before && !loop)
		json_lately(now);
	json_slow(watch, now);
	blame_fill(&blame, watch, index);
	json_begin("blame", '[');
	for (unsigned i = 0; i < blame.count; i++)
		json_text(NULL, blame.sentences[i].text);
	json_end(']');
	json_end('}');
}

void json_thread(const char *name, const struct running *running, bool since_before)
{
	static const char *const places[] = {
		[TIMERHUB_AWAY] = "away",
		[TIMERHUB_IN_CALL] = "call",
		[TIMERHUB_IN_CALLBACK] = "callback",
	};
	static const struct thread never = { .tid = 0 };
	const struct thread *thread = &running->thread;
	const struct thread *since = since_before ? &running->before : &never;
	const char state[] = { thread->state, 0 };

	json_begin(name, '{');
	json_number("tid", (uint64_t)thread->tid);
	json_text("name", thread->name);
	json_text("where", places[running->cell.where]);
	if (running->cell.where == TIMERHUB_IN_CALLBACK) {
		json_text("function", running->function.text);
		json_number("timer", running->cell.timer);
	}
	if (!since_before)
		json_number("for_ns", running->for_ns);
	json_text("does", work_name(work_between(&running->before, thread)));
	json_text("state", state);
	json_text("wchan", thread->wchan);
	json_text("syscall", thread->syscall);
	if (since_before)
		json_number("observed_ns", thread->at_ns - since->at_ns);
	json_number("ran_ns", thread->ran_ns - since->ran_ns);
	if (thread->has_waited_ns)
		json_number("waited_for_cpu_ns", thread->waited_ns - since->waited_ns);
	json_end('}');
}

void json_print(const struct watch *watch)
{
	json_begin(NULL, '{');
	json_number("pid", (uint64_t)watch->target.pid);
	json_text("command", watch->target.command);
	for (unsigned loops = 0; loops < 2; loops++) {
		json_begin(loops ? "loops" : "hubs", '[');
		for (unsigned i = 0; i < watch->count; i++)
			if (is_loop(&watch->now[i].about) == (loops == 1))
				json_one(watch, i);
		json_end(']');
	}
	json_begin("threads", '[');
	for (unsigned i = 0; i < watch->running->count; i++)
		json_thread(NULL, &watch->running->rows[i], false);
	json_end(']');
	json_end('}');
}
