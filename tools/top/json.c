/* SPDX-License-Identifier: MIT */
/*
 * Writes the readings of timerhub-top as JSON. See json.h. A JSON member that is also in struct
 * timerhub_stats has the same name. man/timerhub-top.1 lists all names. target.c has reduced all
 * texts to printable ASCII. In printable ASCII only quotes and backslashes need an escape.
 */
#include "json.h"

#include <inttypes.h>

#include "blame.h"

static void json_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

void json_text(FILE *out, const char *name, const char *text)
{
	fprintf(out, "\"%s\":", name);
	json_string(out, text);
}

void json_number(FILE *out, const char *name, uint64_t value)
{
	fprintf(out, ",\"%s\":%" PRIu64, name, value);
}

static void json_about(FILE *out, const struct board_header *about, const struct reading *now)
{
	json_text(out, "thread", about->thread_name);
	fputc(',', out);
	json_text(out, "clock", clock_name(about->clock, about->manual != 0));
	fputc(',', out);
	json_text(out, "sleeper", sleeper_name(now->sleeper));
	fputc(',', out);
	json_text(out, "library", about->library_version);
	json_number(out, "serial", about->serial);
	json_number(out, "open_ns", reading_more(now->at_ns, about->opened_ns));
	json_number(out, "timers_max", about->timers_max);
}

static void json_counters(FILE *out, const struct reading *now)
{
	json_number(out, "live", now->live);
	json_number(out, "live_max", now->live_max);
	json_number(out, "armed", now->armed);
	json_number(out, "refiled", now->refiled);
	json_number(out, "cancelled", now->cancelled);
	json_number(out, "expired", now->expired);
	json_number(out, "delivered", now->delivered);
	json_number(out, "overruns", now->overruns);
	json_number(out, "inbox", now->inbox);
	json_number(out, "inbox_max", now->inbox_max);
	json_number(out, "outbox", now->outbox);
	json_number(out, "owner_wakeups", now->owner_wakeups);
	json_number(out, "submit_wakes", now->submit_wakes);
	json_number(out, "queue_signals", now->queue_signals);
	json_number(out, "cascaded", now->cascaded);
	json_number(out, "clock_jumps", now->clock_jumps);
	json_number(out, "slow_callbacks", now->slow_callbacks);
	json_number(out, "slow_sum_ns", now->slow_sum_ns);
	json_number(out, "untaken_ns", now->untaken_ns);
}

static void json_rates(FILE *out, const struct reading *now, const struct reading *before)
{
	const struct {
		const char *name;
		uint64_t now, before;
	} rates[] = {
		{ "armed", now->armed, before->armed },
		{ "refiled", now->refiled, before->refiled },
		{ "cancelled", now->cancelled, before->cancelled },
		{ "expired", now->expired, before->expired },
		{ "delivered", now->delivered, before->delivered },
		{ "overruns", now->overruns, before->overruns },
		{ "owner_wakeups", now->owner_wakeups, before->owner_wakeups },
		{ "submit_wakes", now->submit_wakes, before->submit_wakes },
		{ "queue_signals", now->queue_signals, before->queue_signals },
	};
	uint64_t elapsed_ns = now->at_ns - before->at_ns;

	fprintf(out, ",\"elapsed_ns\":%" PRIu64 ",\"per_second\":{", elapsed_ns);
	for (unsigned i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		fprintf(out, "%s\"%s\":%.3f", i > 0 ? "," : "", rates[i].name,
		        reading_rate(rates[i].now, rates[i].before, elapsed_ns));
	fputc('}', out);
}

/*
 * Write the buckets of the lateness histogram that are not empty. The upper bound of the last
 * bucket is null.
 */
static void json_buckets(FILE *out, const struct lateness *lateness)
{
	const char *separator = "";

	fprintf(out, ",\"buckets\":[");
	for (unsigned i = 0; i < BOARD_LATENESS_BUCKETS; i++) {
		if (lateness->buckets[i] == 0)
			continue;
		if (lateness_below_ns(i) == UINT64_MAX)
			fprintf(out, "%s[null,%" PRIu64 "]", separator, lateness->buckets[i]);
		else
			fprintf(out, "%s[%" PRIu64 ",%" PRIu64 "]", separator, lateness_below_ns(i),
			        lateness->buckets[i]);
		separator = ",";
	}
	fputc(']', out);
}

static void json_lateness(FILE *out, const char *name, const struct lateness *lateness)
{
	fprintf(out, ",\"%s\":{\"count\":%" PRIu64, name, lateness->count);
	if (lateness->count > 0) {
		json_number(out, "p50_below_ns", lateness->p50_below_ns);
		json_number(out, "p99_below_ns", lateness->p99_below_ns);
		json_number(out, "max_below_ns", lateness->max_below_ns);
	}
	json_buckets(out, lateness);
	fputc('}', out);
}

static void json_queues(FILE *out, const struct reading *now)
{
	json_number(out, "queue_count", now->queue_count);
	fprintf(out, ",\"queues\":[");
	for (uint32_t i = 0; i < now->queue_count && i < READING_QUEUES_MAX; i++) {
		const struct queue_reading *queue = &now->queues[i];

		fprintf(out, "%s{\"index\":%" PRIu32 ",\"fd\":%d", i > 0 ? "," : "", queue->index,
		        queue->fd);
		json_number(out, "delivered", queue->delivered);
		json_number(out, "overruns", queue->overruns);
		json_number(out, "outbox", queue->waiting);
		json_number(out, "untaken_ns", queue->untaken_ns);
		fputc('}', out);
	}
	fputc(']', out);
}

static void json_hub(FILE *out, const struct hub *hub, const struct reading *now,
                     const struct reading *before)
{
	struct lateness events = lateness_between(now->lateness, NULL);
	struct lateness deliveries = lateness_between(now->delivery_lateness, NULL);

	json_about(out, &hub->about, now);
	json_counters(out, now);
	json_queues(out, now);
	json_lateness(out, "lateness", &events);
	json_lateness(out, "delivery_lateness", &deliveries);
	if (before && before->at_ns > 0) {
		events = lateness_between(now->lateness, before->lateness);
		deliveries = lateness_between(now->delivery_lateness, before->delivery_lateness);
		json_rates(out, now, before);
		json_lateness(out, "lateness_lately", &events);
		json_lateness(out, "delivery_lateness_lately", &deliveries);
	}
}

static void json_loop(FILE *out, const struct hub *loop, const struct reading *now,
                      const struct reading *before)
{
	struct lateness lateness = lateness_between(now->lateness, NULL);

	json_text(out, "clock", clock_name(loop->about.clock, loop->about.manual != 0));
	fputc(',', out);
	json_text(out, "library", loop->about.library_version);
	json_number(out, "serial", loop->about.serial);
	json_number(out, "open_ns", reading_more(now->at_ns, loop->about.opened_ns));
	json_number(out, "timeouts_max", loop->about.timers_max);
	json_number(out, "added", now->added);
	json_number(out, "turns", now->turns);
	json_number(out, "callbacks", now->callbacks);
	json_number(out, "empty_wakes", now->empty_wakes);
	json_number(out, "turn_max_ns", now->turn_max_ns);
	json_number(out, "refused", now->refused);
	json_number(out, "overdue_ns", now->overdue_ns);
	json_number(out, "slow_callbacks", now->slow_callbacks);
	json_number(out, "slow_sum_ns", now->slow_sum_ns);
	json_lateness(out, "lateness", &lateness);
	if (before && before->at_ns > 0) {
		lateness = lateness_between(now->lateness, before->lateness);
		json_lateness(out, "lateness_lately", &lateness);
	}
}

static void json_slow(FILE *out, const struct watch *watch, unsigned index)
{
	const struct reading *now = &watch->now[index];
	char name[FUNCTION_NAME_BYTES];

	fprintf(out, ",\"slow\":[");
	for (unsigned i = 0; i < now->slow_count; i++) {
		fprintf(out, "%s{", i > 0 ? "," : "");
		function_name(watch->names, now->slow[i].fn, name);
		json_text(out, "function", name);
		json_number(out, "count", now->slow[i].count);
		json_number(out, "sum_ns", now->slow[i].sum_ns);
		json_number(out, "longest_ns", now->slow[i].longest_ns);
		if (now->clock_ns > 0)
			json_number(out, "ago_ns",
			            reading_more(now->clock_ns, now->slow[i].last_ns));
		fputc('}', out);
	}
	fputc(']', out);
}

static void json_blame(FILE *out, const struct watch *watch, unsigned index)
{
	struct blame blame;

	blame_fill(&blame, watch, index);
	fprintf(out, ",\"blame\":[");
	for (unsigned i = 0; i < blame.count; i++) {
		fprintf(out, "%s", i > 0 ? "," : "");
		json_string(out, blame.sentences[i]);
	}
	fputc(']', out);
}

/* Write the hubs, or the loops, of the process. */
static void json_kind(FILE *out, const struct watch *watch, enum board_kind kind)
{
	const char *separator = "";

	for (unsigned i = 0; i < watch->target.hub_count; i++) {
		const struct hub *hub = &watch->target.hubs[i];

		if (hub_is_loop(hub) != (kind == BOARD_LOOP))
			continue;
		fprintf(out, "%s{", separator);
		separator = ",";
		if (kind == BOARD_LOOP)
			json_loop(out, hub, &watch->now[i], watch_before(watch, i));
		else
			json_hub(out, hub, &watch->now[i], watch_before(watch, i));
		json_slow(out, watch, i);
		json_blame(out, watch, i);
		fputc('}', out);
	}
}

static void json_thread(FILE *out, const struct watch *watch, const struct running *running)
{
	static const char *const places[] = {
		[TIMERHUB_AWAY] = "away",
		[TIMERHUB_IN_CALL] = "call",
		[TIMERHUB_IN_CALLBACK] = "callback",
	};
	const struct thread *thread = &running->thread;
	char name[FUNCTION_NAME_BYTES];

	fprintf(out, "{\"tid\":%d,", thread->tid);
	json_text(out, "name", thread->name);
	fprintf(out, ",\"where\":\"%s\"", places[running->cell.where]);
	if (running->cell.where == TIMERHUB_IN_CALLBACK) {
		function_name(watch->names, running->cell.fn, name);
		fputc(',', out);
		json_text(out, "function", name);
		json_number(out, "timer", running->cell.timer);
	}
	json_number(out, "for_ns", running->for_ns);
	fprintf(out, ",\"does\":\"%s\",\"state\":\"%c\",",
	        work_name(work_between(&running->before, thread)), thread->state);
	json_text(out, "wchan", thread->wchan);
	fputc(',', out);
	json_text(out, "syscall", thread->syscall);
	json_number(out, "ran_ns", thread->ran_ns);
	if (thread->has_waited_ns)
		json_number(out, "waited_for_cpu_ns", thread->waited_ns);
	fputc('}', out);
}

void json_print(FILE *out, const struct watch *watch)
{
	fprintf(out, "{\"pid\":%d,", (int)watch->target.pid);
	json_text(out, "command", watch->target.command);
	fprintf(out, ",\"hubs\":[");
	json_kind(out, watch, BOARD_HUB);
	fprintf(out, "],\"loops\":[");
	json_kind(out, watch, BOARD_LOOP);
	fprintf(out, "],\"threads\":[");
	for (unsigned i = 0; i < watch->running->count; i++) {
		fprintf(out, "%s", i > 0 ? "," : "");
		json_thread(out, watch, &watch->running->rows[i]);
	}
	fprintf(out, "]}\n");
}
