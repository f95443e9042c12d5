/* SPDX-License-Identifier: MIT */
/*
 * Law 7: exactly `timers_max` timers, and a cancel or delivery makes room at once. test_periodic.c
 * has the half about periodic timers.
 */
#include "rig.h"

#include <unistd.h>

static unsigned fill(struct timerhub_queue *queue, unsigned max)
{
	unsigned count = 0;
	int result = 0;

	while (count <= max) {
		timerhub_timer timer = UINT64_MAX;

		result = timerhub_after(queue, HOUR + count, count, &timer);
		if (result < 0) {
			expect(timer == UINT64_MAX);
			break;
		}
		count++;
	}
	expect_eq(result, -EAGAIN);
	return count;
}

static const unsigned sizes[] = { 1, 2, 3, 4, 5, 63, 64, 65, 127, 1000, 4096, 5001 };

TEST(capacity_is_exactly_timers_max, 30)
{
	for (unsigned i = 0; i < COUNT_OF(sizes) * 2; i++) {
		unsigned max = sizes[i / 2];
		struct rig rig = i % 2 ? rig_manual(max) : rig_open(max);

		expect_eq(fill(rig.queue, max), max);
		expect_eq(stats_of(rig.hub).live, max);
		expect_eq(stats_of(rig.hub).live_max, max);
		expect_eq(stats_of(rig.hub).armed, max);
		rig_close(&rig);
	}
}

/*
 * One live timer, and one armed and cancelled at full speed: one more slot on each CPU on which the
 * thread has run.
 */
TEST(capacity_under_churn_costs_no_memory, 60)
{
	struct rig rig = rig_open(0);
	uint64_t rss_bytes = 0;

	arm_after(rig.queue, 10 * HOUR, 0);
	for (unsigned i = 0; i < scaled(1500000); i++) {
		if (i == scaled(1500000) / 10)
			rss_bytes = process_rss_bytes();
		expect_eq(timerhub_cancel(rig.hub, arm_after(rig.queue, 10 * HOUR, i)), 0);
	}
	process_rss_is_still(rss_bytes);
	expect_eq(stats_of(rig.hub).live, 1);
	expect_cmp(stats_of(rig.hub).live_max, <=, 1 + sysconf(_SC_NPROCESSORS_CONF));
	rig_close(&rig);
}

TEST(capacity_is_reserved_at_open, 60)
{
	struct rig rig = rig_open(20000);
	unsigned mappings;

	arm_after(rig.queue, 0, 1);
	take_one(rig.queue);
	mappings = process_mapping_count();
	for (unsigned i = 0; i < 20000; i++)
		arm_after(rig.queue, i % 2 ? i * US : HOUR, i);
	for (unsigned i = 0; i < 10000; i++)
		take_one(rig.queue);
	if (!sanitized()) /* the memory of a sanitizer itself may grow */
		expect_eq(process_mapping_count(), mappings);
	else
		expect_cmp(process_mapping_count(), <, mappings + 100);
	rig_close(&rig);
}
