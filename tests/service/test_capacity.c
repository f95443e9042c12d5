/* SPDX-License-Identifier: MIT */
/*
 * Law 7: exactly `timers_max` timers, and a cancel or delivery makes room at once. test_periodic.c
 * has the half about periodic timers.
 */
#include "rig.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned fill(struct timerhub_queue *queue, timerhub_timer *timers, unsigned max)
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
		if (count < max)
			timers[count] = timer;
		count++;
	}
	expect_eq(result, -EAGAIN);
	return count;
}

static const unsigned sizes[] = { 1, 2, 3, 4, 5, 63, 64, 65, 127, 1000, 4096, 5001 };

static struct rig open_one(bool manual, uint32_t timers_max)
{
	return manual ? rig_manual(timers_max) : rig_open(timers_max);
}

START_TEST(capacity_is_exactly_timers_max)
{
	for (unsigned i = 0; i < COUNT_OF(sizes) * 2; i++) {
		unsigned max = sizes[i / 2];
		timerhub_timer *timers = calloc(max, sizeof(*timers));
		struct rig rig = open_one(i % 2, max);

		expect_eq(fill(rig.queue, timers, max), max);
		expect_eq(stats_of(rig.hub).live, max);
		expect_eq(stats_of(rig.hub).live_max, max);
		expect_eq(stats_of(rig.hub).armed, max);
		rig_close(&rig);
		free(timers);
	}
}
END_TEST

/* A cancel needs no owner, so on a manual hub the room is there before any advance. */
START_TEST(capacity_is_back_after_cancel)
{
	for (unsigned i = 0; i < COUNT_OF(sizes) * 2; i++) {
		unsigned max = sizes[i / 2];
		timerhub_timer *timers = calloc(max, sizeof(*timers));
		struct rig rig = open_one(i % 2, max);

		for (unsigned round = 0; round < 3; round++) {
			expect_eq(fill(rig.queue, timers, max), max);
			for (unsigned j = 0; j < max; j += round + 1)
				expect_eq(timerhub_cancel(rig.hub, timers[j]), 0);
			expect_eq(fill(rig.queue, timers, max), (max + round) / (round + 1));
			timerhub_queue_close(rig.queue);
			rig.queue = queue_open(rig.hub);
			expect_eq(stats_of(rig.hub).live, 0);
		}
		rig_close(&rig);
		free(timers);
	}
}
END_TEST

START_TEST(capacity_of_one_arms_again_at_once)
{
	for (unsigned manual = 0; manual < 2; manual++) {
		struct rig rig = open_one(manual, 1);

		for (unsigned i = 0; i < scaled(200000); i++)
			expect_eq(timerhub_cancel(rig.hub, arm_after(rig.queue, 10 * HOUR, i)), 0);
		expect_eq(stats_of(rig.hub).live_max, 1);
		rig_close(&rig);
	}
}
END_TEST

struct tenant {
	struct rig *rig;
	unsigned rounds;
	uint64_t salt;
};

/* At most one timer at a time. */
static void *hold_one(void *arg)
{
	const struct tenant *me = arg;
	struct dice dice = dice_new(me->salt);

	for (unsigned i = 0; i < me->rounds; i++) {
		timerhub_timer timer = arm_after(me->rig->queue, 10 * HOUR, i);

		if (dice_below(&dice, 4) == 0)
			expect_eq(timerhub_rearm(me->rig->hub, timer, 5 * HOUR, 0), 0);
		expect_eq(timerhub_cancel(me->rig->hub, timer), 0);
	}
	return NULL;
}

START_TEST(capacity_of_four_is_enough_for_four_threads)
{
	struct rig rig = rig_open(4);
	struct tenant tenants[4];
	pthread_t threads[COUNT_OF(tenants)];

	for (unsigned i = 0; i < COUNT_OF(tenants); i++) {
		tenants[i] = (struct tenant){ &rig, scaled(100000), i };
		thread_start(&threads[i], hold_one, &tenants[i]);
	}
	for (unsigned i = 0; i < COUNT_OF(tenants); i++)
		thread_join(threads[i]);
	expect_cmp(stats_of(rig.hub).live_max, <=, 4);
	rig_close(&rig);
}
END_TEST

/* Waits for its timer in a queue of its own. */
static void *hold_one_to_the_end(void *arg)
{
	const struct tenant *me = arg;
	struct dice dice = dice_new(me->salt);
	struct timerhub_queue *queue = queue_open(me->rig->hub);

	for (unsigned i = 0; i < me->rounds; i++) {
		timerhub_timer timer = arm_after(queue, dice_magnitude(&dice, 16), i);

		if (dice_below(&dice, 4) || timerhub_cancel(me->rig->hub, timer) == -ENOENT)
			expect_eq(take_one(queue).data, i);
	}
	return NULL;
}

START_TEST(capacity_of_four_is_enough_for_four_threads_that_deliver)
{
	struct rig rig = rig_open(4);
	struct tenant tenants[4];
	pthread_t threads[COUNT_OF(tenants)];

	for (unsigned i = 0; i < COUNT_OF(tenants); i++) {
		tenants[i] = (struct tenant){ &rig, scaled(2500), i };
		thread_start(&threads[i], hold_one_to_the_end, &tenants[i]);
	}
	for (unsigned i = 0; i < COUNT_OF(tenants); i++)
		thread_join(threads[i]);
	rig_close(&rig);
}
END_TEST

/*
 * One live timer, and one armed and cancelled at full speed: one more slot on each CPU on which the
 * thread has run.
 */
START_TEST(capacity_under_churn_costs_no_memory)
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
END_TEST

/*
 * Nobody drains while timers expire, are withdrawn and armed again: stale handles must not fill the
 * queue.
 */
START_TEST(capacity_under_withdrawn_expiries)
{
	struct rig rig = rig_manual(3);
	timerhub_timer keeper = arm_after(rig.queue, 0, 99);
	uint64_t now_ns = 0;

	for (unsigned i = 0; i < scaled(100000); i++) {
		timerhub_timer timer = arm_after(rig.queue, 1, i);

		now_ns += 64;
		advance(rig.hub, now_ns);
		if (i % 2)
			expect_eq(timerhub_rearm(rig.hub, keeper, 64, 0), 0);
		expect_eq(timerhub_cancel(rig.hub, timer), 0);
	}
	advance(rig.hub, now_ns + 64);
	expect_eq(drain_all(rig.queue), 1);
	rig_close(&rig);
}
END_TEST

START_TEST(capacity_is_reserved_at_open)
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
END_TEST

int main(int argc, char **argv)
{
	rigs_begin("capacity", argc, argv);
	tests_add(capacity_is_exactly_timers_max, 30);
	tests_add(capacity_is_back_after_cancel, 30);
	tests_add(capacity_of_one_arms_again_at_once, 60);
	tests_add(capacity_of_four_is_enough_for_four_threads, 60);
	tests_add(capacity_of_four_is_enough_for_four_threads_that_deliver, 60);
	tests_add(capacity_under_churn_costs_no_memory, 60);
	tests_add(capacity_under_withdrawn_expiries, 60);
	tests_add(capacity_is_reserved_at_open, 60);
	return tests_run();
}
