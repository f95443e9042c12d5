/* SPDX-License-Identifier: MIT */
/*
 * The statistics as OpenMetrics text: its format, and the counts up to each bucket's limit.
 * test_stats_text.c looks for each number of the same table, and cuts a text of the same writer at
 * any length; tests/tools/test_top.py has the labels of several hubs.
 */
#include "harness.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <metrics/openmetrics.h>
#include <stdio.h>
#include <string.h>
#include <timerhub.h>

#define TEXT_BYTES 16384
#define MANUAL_BYTES 8000 /* upper bound of the text's length that the manual states */

TEST(text_is_that_of_the_format, 10)
{
	static const char begins[] = "# TYPE timerhub_armed counter\n"
				     "# HELP timerhub_armed Timers armed.\n"
				     "timerhub_armed_total 18446744073709551615\n"
				     "# TYPE timerhub_refiled counter\n";
	static const char gauge[] = "# TYPE timerhub_live gauge\n"
				    "# HELP timerhub_live Timers live now.\n"
				    "timerhub_live 7\n";
	static const char ends[] =
		"timerhub_sleeper_info{sleeper=\"ppoll\"} 1\n"
		"# TYPE timerhub_lateness_seconds histogram\n"
		"# UNIT timerhub_lateness_seconds seconds\n"
		"# HELP timerhub_lateness_seconds Time at which a timer was delivered to its "
		"queue, minus the deadline.\n"
		"timerhub_lateness_seconds_bucket{le=\"0.000000127\"} 3\n";
	struct timerhub_stats stats = {
		.armed = UINT64_MAX,
		.live = 7,
		.sleeper = TIMERHUB_SLEEPER_POLL,
		.lateness = { [0] = 1, [6] = 2, [35] = 4, [36] = 8, [63] = 16 },
		.delivery_lateness = { [7] = 5 },
	};
	char text[TEXT_BYTES];

	/* the locale of the environment must not change the decimal point into a comma */
	(void)setlocale(LC_ALL, "");
	expect_eq(timerhub_stats_metrics(&stats, text, sizeof(text)), strlen(text));
	expect(strncmp(text, begins, strlen(begins)) == 0);
	expect(strstr(text, gauge) != NULL);
	expect(strstr(text, ends) != NULL);
	expect(strstr(text, "timerhub_lateness_seconds_bucket{le=\"68.719476735\"} 7\n"
	                    "timerhub_lateness_seconds_bucket{le=\"+Inf\"} 31\n"
	                    "# TYPE timerhub_delivery_lateness_seconds histogram\n") != NULL);
	expect(strcmp(strstr(text, "delivery_lateness_seconds_bucket{le=\"+Inf"),
	              "delivery_lateness_seconds_bucket{le=\"+Inf\"} 5\n# EOF\n") == 0);
	expect(strstr(text, "_sum") == NULL && strstr(text, "_count") == NULL);
}

TEST(text_is_as_short_as_the_manual_says, 10)
{
	struct timerhub_stats stats;

	memset(&stats, 0xff, sizeof(stats));
	expect_lt(timerhub_stats_metrics(&stats, NULL, 0), MANUAL_BYTES);
}

TEST(text_of_nothing_is_refused, 10)
{
	struct timerhub_stats stats = { 0 };
	char text[] = "as it is";

	expect_eq(timerhub_stats_metrics(NULL, text, sizeof(text)), -EINVAL);
	expect_eq(timerhub_stats_metrics(&stats, NULL, 1), -EINVAL);
	expect(strcmp(text, "as it is") == 0);
}

/* Returns the number of expiries whose lateness is at most `bound_ns`. */
static uint64_t not_later(const uint64_t *buckets, uint64_t bound_ns)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < TIMERHUB_LATENESS_BUCKETS; i++)
		if (i < 63 && ((uint64_t)2 << i) - 1 <= bound_ns)
			count += buckets[i];
	return count;
}

TEST(bucket_counts_all_that_are_not_later, 30)
{
	struct dice dice = dice_new(0);

	for (unsigned round = 0; round < scaled(200); round++) {
		struct timerhub_stats stats = { 0 };
		char text[TEXT_BYTES], *line;
		const uint64_t *buckets = stats.lateness;
		uint64_t all[2] = { 0 }, seconds, ns, count;
		unsigned lines = 0;

		for (unsigned i = 0; i < TIMERHUB_LATENESS_BUCKETS; i++) {
			all[0] += stats.lateness[i] = dice_below(&dice, 1000);
			all[1] += stats.delivery_lateness[i] = dice_below(&dice, 1000);
		}
		expect(timerhub_stats_metrics(&stats, text, sizeof(text)) > 0);
		for (line = strstr(text, "_bucket{"); line; line = strstr(line + 1, "_bucket{")) {
			if (sscanf(line, "_bucket{le=\"%" SCNu64 ".%9" SCNu64 "\"} %" SCNu64,
			           &seconds, &ns, &count) == 3)
				expect_eq(count, not_later(buckets, seconds * 1000000000 + ns));
			else if (sscanf(line, "_bucket{le=\"+Inf\"} %" SCNu64, &count) == 1)
				expect_eq(count, all[buckets != stats.lateness]);
			else
				expect(false);
			if (++lines == 31)
				buckets = stats.delivery_lateness;
		}
		expect_eq(lines, 62);
	}
}

/* A label's value, which the program may choose, is quoted, and cannot end the line. */
TEST(label_is_a_quoted_printable_text, 10)
{
	char buffer[64];
	struct text label = { .buffer = buffer, .bytes = sizeof(buffer) };

	metrics_add_label(&label, "thread", "a\"b\\c\n\xff");
	text_end(&label);
	expect(strcmp(buffer, "thread=\"a\\\"b\\\\c??\"") == 0);
}
