/* SPDX-License-Identifier: MIT */
/*
 * Tests the statistics as text. The text must have a line for every counter. A buffer of any length
 * must get the beginning of the text. The percentiles of lateness must equal the percentiles of a
 * sorted list of latenesses.
 */
#include "harness.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <timerhub.h>

#define TEXT_BYTES 2048

/* Returns the value in the line of `text` that has this name, and is not the first. */
static uint64_t number_of(const char *text, const char *name)
{
	char start[64];
	const char *line;

	(void)snprintf(start, sizeof(start), "\n%s ", name);
	line = strstr(text, start);
	expect(line != NULL);
	return strtoull(line + strlen(start), NULL, 10);
}

TEST(text_is_a_line_for_each_counter, 10)
{
	static const char wanted[] =
		"armed 1\nrefiled 2\ncancelled 3\nexpired 4\ndelivered 5\n"
		"overruns 6\nlive 7\nlive_max 8\ninbox_max 9\n"
		"owner_wakeups 10\nsubmit_wakes 11\nqueue_signals 12\n"
		"cascaded 13\nclock_jumps 18446744073709551615\n"
		"slow_callbacks 14\nslow_sum_ns 15\nwaiting 16\nuntaken_ns 17\n"
		"sleeper io_uring\nlateness_p50_below_ns 2048\n"
		"lateness_p99_below_ns 4096\nlateness_max_below_ns 4096\n"
		"delivery_lateness_p50_below_ns 64\n"
		"delivery_lateness_p99_below_ns 64\n"
		"delivery_lateness_max_below_ns 128\n";
	struct timerhub_stats stats = {
		.armed = 1,
		.refiled = 2,
		.cancelled = 3,
		.expired = 4,
		.delivered = 5,
		.overruns = 6,
		.live = 7,
		.live_max = 8,
		.inbox_max = 9,
		.owner_wakeups = 10,
		.submit_wakes = 11,
		.queue_signals = 12,
		.cascaded = 13,
		.clock_jumps = UINT64_MAX,
		.slow_callbacks = 14,
		.slow_sum_ns = 15,
		.waiting = 16,
		.untaken_ns = 17,
		.sleeper = TIMERHUB_SLEEPER_URING,
		.lateness = { [10] = 3, [11] = 2 },
		.delivery_lateness = { [5] = 199, [6] = 1 },
	};
	char text[TEXT_BYTES];

	/* the locale of the environment must not add separators between thousands */
	(void)setlocale(LC_ALL, "");
	expect_eq(timerhub_stats_text(&stats, text, sizeof(text)), strlen(wanted));
	expect(strcmp(text, wanted) == 0);
}

/*
 * The counters are the 64-bit words of struct timerhub_stats. The test gives each counter a
 * different number.
 */
TEST(no_counter_is_left_out, 10)
{
	const size_t sleeper = offsetof(struct timerhub_stats, sleeper) / 8;
	const size_t lateness = offsetof(struct timerhub_stats, lateness) / 8;
	const size_t end = offsetof(struct timerhub_stats, reserved) / 8;
	struct timerhub_stats stats = { 0 };
	char text[TEXT_BYTES], number[32];
	uint64_t words[sizeof(stats) / 8];

	memset(words, 0, sizeof(words));
	for (size_t i = 0; i < end; i++)
		if (i != sleeper && (i < lateness || i >= lateness + TIMERHUB_LATENESS_BUCKETS))
			words[i] = 1000000 + i;
	memcpy(&stats, words, sizeof(stats));
	expect(timerhub_stats_text(&stats, text, sizeof(text)) > 0);
	for (size_t i = 0; i < end; i++) {
		(void)snprintf(number, sizeof(number), " %" PRIu64 "\n", words[i]);
		expect(strstr(text, number) != NULL);
	}
}

TEST(text_is_cut_at_the_room_there_is, 10)
{
	struct timerhub_stats stats = { .armed = UINT64_MAX, .lateness = { [63] = 1 } };
	char whole[TEXT_BYTES], text[TEXT_BYTES];
	int length = timerhub_stats_text(&stats, NULL, 0);

	expect_lt(0, length);
	expect_eq(timerhub_stats_text(&stats, whole, sizeof(whole)), length);
	expect_eq(strlen(whole), length);
	for (size_t bytes = 1; bytes <= (size_t)length + 1; bytes++) {
		memset(text, '#', sizeof(text));
		expect_eq(timerhub_stats_text(&stats, text, bytes), length);
		expect_eq(strlen(text), bytes - 1);
		expect(memcmp(text, whole, bytes - 1) == 0);
		for (size_t i = bytes; i < sizeof(text); i++)
			expect_eq(text[i], '#');
	}
	memset(text, '#', sizeof(text));
	expect_eq(timerhub_stats_text(&stats, text, 0), length);
	expect_eq(text[0], '#');
}

TEST(text_of_nothing_is_refused, 10)
{
	struct timerhub_stats stats = { 0 };
	char text[] = "as it is";

	expect_eq(timerhub_stats_text(NULL, text, sizeof(text)), -EINVAL);
	expect_eq(timerhub_stats_text(&stats, NULL, 1), -EINVAL);
	expect(strcmp(text, "as it is") == 0);
}

static uint64_t bucket_end_ns(unsigned bucket)
{
	return bucket == 63 ? UINT64_MAX : UINT64_C(2) << bucket;
}

/*
 * The sorted list holds the lateness bucket of each expiry. For the percentile P, the expected
 * value is the entry at P percent of the list's length.
 */
TEST(ranks_are_those_of_a_sorted_list, 30)
{
	static const struct {
		const char *name;
		unsigned percent;
	} ranks[] = { { "lateness_p50_below_ns", 50 },
		      { "lateness_p99_below_ns", 99 },
		      { "lateness_max_below_ns", 100 } };
	struct dice dice = dice_new(0);

	for (unsigned round = 0; round < scaled(2000); round++) {
		struct timerhub_stats stats = { 0 };
		unsigned list[512], count = 0;
		char text[TEXT_BYTES];

		for (unsigned bucket = 0; bucket < 64; bucket++) {
			unsigned some = (unsigned)dice_below(&dice, 2 + round % 7);

			stats.lateness[bucket] = some;
			while (some-- > 0)
				list[count++] = bucket;
		}
		if (round == 0) { /* nothing has expired */
			memset(stats.lateness, 0, sizeof(stats.lateness));
			count = 0;
		}
		expect(timerhub_stats_text(&stats, text, sizeof(text)) > 0);
		for (unsigned i = 0; i < COUNT_OF(ranks); i++)
			expect_eq(
				number_of(text, ranks[i].name),
				count == 0
					? 0
					: bucket_end_ns(
						  list[(count * ranks[i].percent + 99) / 100 - 1]));
	}
}
