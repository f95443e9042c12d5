/* SPDX-License-Identifier: MIT */
/*
 * Writes the readings of timerhub-top as JSON. See json.h. A JSON member that is also in struct
 * timerhub_stats has the same name. man/timerhub-top.1 lists all names. target.c has reduced all
 * texts to printable ASCII. In printable ASCII only quotes and backslashes need an escape.
 */
#include "json.h"

#include <inttypes.h>

static void json_text(FILE *out, const char *name, const char *text)
{
	fprintf(out, "\"%s\":\"", name);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

static void json_number(FILE *out, const char *name, uint64_t value)
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
		fputc('}', out);
	}
	fputc(']', out);
}

static void json_hub(FILE *out, const struct hub *hub, const struct reading *now,
                     const struct reading *before)
{
	struct lateness events = lateness_between(now->lateness, NULL);
	struct lateness deliveries = lateness_between(now->delivery_lateness, NULL);

	fputc('{', out);
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
	fputc('}', out);
}

static void json_loop(FILE *out, const struct hub *loop, const struct reading *now,
                      const struct reading *before)
{
	struct lateness lateness = lateness_between(now->lateness, NULL);

	fputc('{', out);
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
	json_lateness(out, "lateness", &lateness);
	if (before && before->at_ns > 0) {
		lateness = lateness_between(now->lateness, before->lateness);
		json_lateness(out, "lateness_lately", &lateness);
	}
	fputc('}', out);
}

/* Write the hubs, or the loops, of the process. */
static void json_kind(FILE *out, const struct target *target, enum board_kind kind,
                      const struct reading *now, const struct reading *before)
{
	const char *separator = "";

	for (unsigned i = 0; i < target->hub_count; i++) {
		const struct hub *hub = &target->hubs[i];

		if (hub_is_loop(hub) != (kind == BOARD_LOOP))
			continue;
		(void)fputs(separator, out);
		separator = ",";
		if (kind == BOARD_LOOP)
			json_loop(out, hub, &now[i], before ? &before[i] : NULL);
		else
			json_hub(out, hub, &now[i], before ? &before[i] : NULL);
	}
}

void json_print(FILE *out, const struct target *target, const struct reading *now,
                const struct reading *before)
{
	fprintf(out, "{\"pid\":%d,", (int)target->pid);
	json_text(out, "command", target->command);
	fprintf(out, ",\"hubs\":[");
	json_kind(out, target, BOARD_HUB, now, before);
	fprintf(out, "],\"loops\":[");
	json_kind(out, target, BOARD_LOOP, now, before);
	fprintf(out, "]}\n");
}
