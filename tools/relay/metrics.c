/* SPDX-License-Identifier: MIT */
/*
 * Prints the replies to the command stat as OpenMetrics text. It asks all servers before it prints,
 * since a metric family may appear only once.
 */
#include <inttypes.h>
#include <stdlib.h>

#include <metrics/openmetrics.h>

#include "tool.h"

#define LABELS_BYTES 128
/* a program chooses its relay's name; a relay whose labels do not fit is left out */
#define RELAY_LABELS_BYTES 512

struct number {
	struct metrics_family family;
	const char *field;
	unsigned decimals; /* prints the field / 10^decimals */
};

#define NUMBER(field, type, help)                                                                  \
	{                                                                                          \
		{ "timerhub_relay_" field, type, NULL, help }, field, 0                            \
	}
#define SECONDS(field, help)                                                                       \
	{                                                                                          \
		{ "timerhub_relay_" field "_seconds", "gauge", "seconds", help }, field, 6         \
	}

static const struct number numbers[] = {
	NUMBER("tasks", "gauge", "Live tasks."),
	NUMBER("waiting", "gauge", "Tasks that are not in the stream."),
	NUMBER("ready", "gauge", "Tasks in the stream."),
	NUMBER("taken", "gauge", "Tasks that a consumer has taken and not finished."),
	SECONDS("lag", "Time since the due time of the first task that no consumer has taken."),
	SECONDS("overdue", "Time since the due time of the first waiting task."),
	NUMBER("parked", "gauge", "Parked tasks."),
	NUMBER("paused", "gauge", "1 if the queue is paused, else 0."),
	NUMBER("relays", "gauge", "Relays with a rank."),
	NUMBER("tasks_max", "gauge", "Largest number of live tasks of the queue."),
	NUMBER("promoted", "counter", "Tasks that became due."),
	NUMBER("leases_over", "counter", "Deliveries repeated because a lease was over."),
	NUMBER("parked_ever", "counter", "Tasks that were ever parked."),
	NUMBER("dead_cut", "counter", "Parked tasks that the setting dead_max has cut off."),
	NUMBER("orphans", "counter",
	       "Ids, records and entries of other programs that relays have found."),
	NUMBER("swept", "counter", "Entries removed after a plain XACK."),
};

static const struct metrics_family looks_family = { "timerhub_relay_looks", "counter", NULL,
	                                            "Polls of a relay." };
static const struct metrics_family bells_family = { "timerhub_relay_bells", "counter", NULL,
	                                            "Wake-up messages to a relay." };
static const struct metrics_family up_family = { "timerhub_relay_server_up", "gauge", NULL,
	                                         "1 if the server has answered, else 0." };
static const struct metrics_family lateness_family = {
	"timerhub_relay_lateness_seconds", "histogram", "seconds",
	"Time at which a task was promoted, minus the time at which it was due."
};

struct told {
	uint32_t count;
	/* NULL: the server has not answered, so its only metric is that it is not up */
	struct reply *replies[KEYS_SHARDS_MAX];
	char labels[KEYS_SHARDS_MAX][LABELS_BYTES];
};

/* ---- one server ---- */

static void add_number(struct text *text, const struct number *number, const struct reply *reply,
                       const char *labels)
{
	const char *value = stat_value(reply, number->field);

	if (value)
		metrics_add_sample(text, &number->family, labels, strtoull(value, NULL, 10),
		                   number->decimals);
}

static void add_lateness(struct text *text, const struct reply *reply, const char *labels)
{
	uint64_t buckets[METRICS_BUCKETS] = { 0 };
	const char *name, *value;
	size_t at = 0;

	while (stat_next(reply, &at, &name, &value))
		stat_add_late(name, value, buckets, METRICS_BUCKETS);
	metrics_add_histogram(text, &lateness_family, labels, buckets);
}

static void add_relays(struct text *text, const struct metrics_family *family, unsigned index,
                       const struct reply *reply, const char *labels)
{
	const char *name, *value;

	for (size_t at = 0; stat_next(reply, &at, &name, &value);) {
		char all[RELAY_LABELS_BYTES];
		struct text more = { .buffer = all, .bytes = sizeof(all) };
		uint64_t said[RELAY_NUMBERS];
		const char *relay = stat_relay(name, value, said);

		if (!relay)
			continue;
		text_add(&more, labels);
		metrics_add_label(&more, "relay", relay);
		text_end(&more);
		if (more.length < sizeof(all))
			metrics_add_sample(text, family, all, said[index], 0);
	}
}

/* ---- all servers ---- */

static void add_all_relays(struct text *text, const struct metrics_family *family, unsigned index,
                           const struct told *told)
{
	metrics_add_family(text, family);
	for (uint32_t i = 0; i < told->count; i++)
		add_relays(text, family, index, told->replies[i], told->labels[i]);
}

/* Returns the length of the whole text, even if the buffer is shorter. */
static size_t write_told(const struct told *told, char *buffer, size_t bytes)
{
	struct text text = { .buffer = buffer, .bytes = bytes };

	metrics_add_family(&text, &up_family);
	for (uint32_t server = 0; server < told->count; server++)
		metrics_add_sample(&text, &up_family, told->labels[server],
		                   told->replies[server] != NULL, 0);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		metrics_add_family(&text, &numbers[i].family);
		for (uint32_t server = 0; server < told->count; server++)
			add_number(&text, &numbers[i], told->replies[server], told->labels[server]);
	}
	add_all_relays(&text, &looks_family, RELAY_LOOKS, told);
	add_all_relays(&text, &bells_family, RELAY_BELLS, told);
	metrics_add_family(&text, &lateness_family);
	for (uint32_t server = 0; server < told->count; server++)
		if (told->replies[server])
			add_lateness(&text, told->replies[server], told->labels[server]);
	metrics_end(&text);
	return text.length;
}

static enum status print_told(const struct told *told)
{
	size_t length = write_told(told, NULL, 0);
	char *text = malloc(length + 1);

	if (!text)
		return out_of_memory();
	(void)write_told(told, text, length + 1);
	(void)fwrite(text, 1, length, stdout);
	free(text);
	return GOOD;
}

static enum status ask_server(struct call *call, uint32_t server, const char *queue,
                              struct told *told)
{
	struct text labels = { .buffer = told->labels[server], .bytes = LABELS_BYTES };
	char number[16];

	(void)snprintf(number, sizeof(number), "%" PRIu32, server);
	metrics_add_label(&labels, "queue", queue);
	metrics_add_label(&labels, "server", number);
	text_end(&labels);
	return ask_stat(call, server, queue, &told->replies[server]);
}

/* A server that fails hides none of the others, or the alarm for it would vanish with them. */
enum status do_metrics(struct call *call, char **words)
{
	struct told told = { .count = call->shards };
	enum status status = GOOD, printed;

	for (uint32_t i = 0; i < told.count; i++)
		status = worse(status, ask_server(call, i, words[0], &told));
	printed = status == REFUSED ? GOOD : print_told(&told);
	for (uint32_t i = 0; i < told.count; i++)
		reply_free(told.replies[i]);
	return printed == GOOD ? status : printed;
}
