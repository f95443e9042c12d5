/* SPDX-License-Identifier: MIT */
/*
 * Writes statistics as text in the OpenMetrics format 1.0, for hubs and for the tools. The caller
 * adds one family of metrics after the other, each with its samples, and then calls metrics_end().
 * The argument `labels` of a function is a text that metrics_add_label() has written, or "".
 */
#ifndef TIMERHUB_OPENMETRICS_H
#define TIMERHUB_OPENMETRICS_H

#include "base/text.h"

/*
 * Of a histogram's 64 buckets, the text shows those that end at 2^7 - 1 ns to 2^36 - 1 ns (69 s).
 * Shorter times are in the first of these, longer ones in +Inf.
 */
#define METRICS_BUCKET_MIN 6u
#define METRICS_BUCKET_MAX 35u
#define METRICS_BUCKETS 64u

struct metrics_family {
	const char *name; /* the family's name, without the suffix that its samples have */
	const char *type; /* "counter", "gauge", "histogram" or "info" */
	const char *unit; /* its unit, with which `name` ends then, or NULL */
	const char *help; /* what it counts, in a sentence */
};

/* Adds a line "# what name value", such as those with which a family begins. */
static inline void metrics_add_head(struct text *text, const char *what, const char *name,
                                    const char *value)
{
	text_add(text, "# ");
	text_add(text, what);
	text_add_char(text, ' ');
	text_add(text, name);
	text_add_char(text, ' ');
	text_add(text, value);
	text_add_char(text, '\n');
}

/*
 * Begins a family, which is a group of samples with the same name: adds the lines with its type,
 * its unit and its help text. The samples must follow.
 */
static inline void metrics_add_family(struct text *text, const struct metrics_family *family)
{
	metrics_add_head(text, "TYPE", family->name, family->type);
	if (family->unit)
		metrics_add_head(text, "UNIT", family->name, family->unit);
	metrics_add_head(text, "HELP", family->name, family->help);
}

/* Adds a label to the text `labels`. Bytes that are not printable ASCII become question marks. */
static inline void metrics_add_label(struct text *labels, const char *name, const char *value)
{
	if (labels->length > 0)
		text_add_char(labels, ',');
	text_add(labels, name);
	text_add(labels, "=\"");
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			text_add_char(labels, '\\');
		text_add_char(labels, *value >= ' ' && *value <= '~' ? *value : '?');
	}
	text_add_char(labels, '"');
}

/*
 * Adds a sample of a counter or a gauge. If `number` is 1234 and `decimals` is 3, the value is
 * 1.234.
 */
static inline void metrics_add_sample(struct text *text, const struct metrics_family *family,
                                      const char *labels, uint64_t number, unsigned decimals)
{
	text_add(text, family->name);
	if (*family->type == 'c') /* only the type "counter" begins with a c */
		text_add(text, "_total");
	if (*labels) {
		text_add_char(text, '{');
		text_add(text, labels);
		text_add_char(text, '}');
	}
	text_add_char(text, ' ');
	text_add_decimal(text, number, decimals);
	text_add_char(text, '\n');
}

/*
 * Adds one bucket of a histogram. `count` is the number of all values up to the bucket's end. A
 * bucket above METRICS_BUCKET_MAX is written as +Inf.
 */
static inline void metrics_add_bucket(struct text *text, const struct metrics_family *family,
                                      const char *labels, unsigned bucket, uint64_t count)
{
	text_add(text, family->name);
	text_add(text, "_bucket{");
	text_add(text, labels);
	text_add(text, *labels ? ",le=\"" : "le=\"");
	if (bucket > METRICS_BUCKET_MAX)
		text_add(text, "+Inf");
	else
		text_add_decimal(text, ((uint64_t)2 << bucket) - 1, 9);
	text_add(text, "\"} ");
	text_add_decimal(text, count, 0);
	text_add_char(text, '\n');
}

/*
 * Adds a histogram of times. buckets[i] counts those of 2^i to 2^(i+1) - 1 ns. The text gives them
 * in seconds.
 */
static inline void metrics_add_histogram(struct text *text, const struct metrics_family *family,
                                         const char *labels, const uint64_t *buckets)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < METRICS_BUCKETS; i++) {
		count += buckets[i];
		if (i >= METRICS_BUCKET_MIN && i <= METRICS_BUCKET_MAX)
			metrics_add_bucket(text, family, labels, i, count);
	}
	/* Leave out _sum and _count: the sum is unknown, and readers expect both or none. */
	metrics_add_bucket(text, family, labels, METRICS_BUCKETS, count);
}

/*
 * Adds the line "# EOF", with which a text in the OpenMetrics format must end. Nothing may be added
 * afterwards.
 */
static inline void metrics_end(struct text *text)
{
	text_add(text, "# EOF\n");
	text_end(text);
}

#endif
