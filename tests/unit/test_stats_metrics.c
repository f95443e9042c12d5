/* SPDX-License-Identifier: MIT */
/*
 * Tests the statistics as OpenMetrics text. The tests compare the whole text, look for every number
 * in it, and cut it at any length. One more test counts the events up to the limit of each bucket,
 * and compares the counts. The last test gives labels to two hubs. tests/tools/test_top.py reads an
 * OpenMetrics text with a parser of the format.
 */
#include "harness.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <metrics/stats_text.h>
#include <stdio.h>
#include <string.h>

#include "dice.h"

#define TEXT_BYTES 16384
#define MANUAL_BYTES 8000 /* upper bound of the text's length that the manual states */

START_TEST(text_is_that_of_the_format)
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
END_TEST

/*
 * The struct of the statistics consists of 64-bit numbers. The test gives each number a different
 * value.
 */
START_TEST(no_number_is_left_out)
{
	const size_t sleeper = offsetof(struct timerhub_stats, sleeper) / 8;
	const size_t lateness = offsetof(struct timerhub_stats, lateness) / 8;
	const size_t end = offsetof(struct timerhub_stats, reserved) / 8;
	struct timerhub_stats stats = { 0 };
	char text[TEXT_BYTES], number[32];
	uint64_t words[sizeof(stats) / 8] = { 0 };

	for (size_t i = 0; i < end; i++)
		if (i != sleeper && (i < lateness || i >= lateness + TIMERHUB_LATENESS_BUCKETS))
			words[i] = 1000000 + i;
	memcpy(&stats, words, sizeof(stats));
	expect(timerhub_stats_metrics(&stats, text, sizeof(text)) > 0);
	for (size_t i = 0; i < end; i++) {
		bool is_ns = i == offsetof(struct timerhub_stats, slow_sum_ns) / 8 ||
		             i == offsetof(struct timerhub_stats, untaken_ns) / 8;

		/* times are in seconds */
		(void)snprintf(number, sizeof(number), " %s%09" PRIu64 "\n", is_ns ? "0." : "",
		               words[i]);
		if (!is_ns)
			(void)snprintf(number, sizeof(number), " %" PRIu64 "\n", words[i]);
		expect(words[i] == 0 || strstr(text, number) != NULL);
	}
}
END_TEST

START_TEST(text_is_cut_at_the_room_there_is)
{
	struct timerhub_stats stats;
	char whole[TEXT_BYTES], text[TEXT_BYTES];
	int length;

	memset(&stats, 0xff, sizeof(stats));
	length = timerhub_stats_metrics(&stats, NULL, 0);
	expect_lt(0, length);
	expect_lt(length, MANUAL_BYTES);
	expect_eq(timerhub_stats_metrics(&stats, whole, sizeof(whole)), length);
	for (size_t bytes = 1; bytes <= (size_t)length + 1; bytes++) {
		memset(text, '#', sizeof(text));
		expect_eq(timerhub_stats_metrics(&stats, text, bytes), length);
		expect_eq(strlen(text), bytes - 1);
		expect(memcmp(text, whole, bytes - 1) == 0);
		expect_eq(text[bytes], '#');
	}
}
END_TEST

START_TEST(text_of_nothing_is_refused)
{
	struct timerhub_stats stats = { 0 };
	char text[] = "as it is";

	expect_eq(timerhub_stats_metrics(NULL, text, sizeof(text)), -EINVAL);
	expect_eq(timerhub_stats_metrics(&stats, NULL, 1), -EINVAL);
	expect(strcmp(text, "as it is") == 0);
}
END_TEST

/* Returns the number of expiries whose lateness is at most `bound_ns`. */
static uint64_t not_later(const uint64_t *buckets, uint64_t bound_ns)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < TIMERHUB_LATENESS_BUCKETS; i++)
		if (i < 63 && ((uint64_t)2 << i) - 1 <= bound_ns)
			count += buckets[i];
	return count;
}

START_TEST(bucket_counts_all_that_are_not_later)
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
END_TEST

static unsigned occurrences(const char *text, const char *of)
{
	unsigned count = 0;

	for (; (text = strstr(text, of)); text++)
		count++;
	return count;
}

START_TEST(hubs_share_a_family_and_differ_in_labels)
{
	struct labelled_stats hubs[2] = {
		{ .stats = { .armed = 5 } },
		{ .stats = { .armed = 6, .sleeper = TIMERHUB_SLEEPER_URING } },
	};
	char labels[2][64], buffer[2 * TEXT_BYTES];
	struct text text = { .buffer = buffer, .bytes = sizeof(buffer) };

	for (unsigned i = 0; i < 2; i++) {
		struct text label = { .buffer = labels[i], .bytes = sizeof(labels[i]) };

		metrics_add_label(&label, "hub", i == 0 ? "0" : "1");
		metrics_add_label(&label, "thread", "a\"b\\c\n\xff");
		text_end(&label);
		hubs[i].labels = labels[i];
	}
	stats_metrics_add(&text, hubs, 2);
	metrics_end(&text);
	expect(strstr(buffer, "timerhub_armed_total{hub=\"0\",thread=\"a\\\"b\\\\c??\"} 5\n"
	                      "timerhub_armed_total{hub=\"1\",thread=\"a\\\"b\\\\c??\"} 6\n"));
	expect(strstr(buffer, "_info{hub=\"0\",thread=\"a\\\"b\\\\c??\",sleeper=\"none\"} 1\n"));
	expect(strstr(buffer,
	              "_info{hub=\"1\",thread=\"a\\\"b\\\\c??\",sleeper=\"io_uring\"} 1\n"));
	expect(strstr(buffer, "{hub=\"1\",thread=\"a\\\"b\\\\c??\",le=\"+Inf\"} 0\n"));
	expect_eq(occurrences(buffer, "# TYPE timerhub_armed "), 1);
	expect_eq(occurrences(buffer, "# EOF"), 1);
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("stats_metrics", argc, argv);
	tests_add(text_is_that_of_the_format, 10);
	tests_add(no_number_is_left_out, 10);
	tests_add(text_is_cut_at_the_room_there_is, 10);
	tests_add(text_of_nothing_is_refused, 10);
	tests_add(bucket_counts_all_that_are_not_later, 30);
	tests_add(hubs_share_a_family_and_differ_in_labels, 10);
	return tests_run();
}
