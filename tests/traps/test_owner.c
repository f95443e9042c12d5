/* SPDX-License-Identifier: MIT */
/*
 * Trap 5 and law 5: the owner's thread stopped between the steps of its pass while callers submit.
 */
#include "puppet.h"

/*
 * Trap 5: the owner's earliest timer has expired; the next is far away. Before the owner raises its
 * promise, which is a moment of the past by now, a caller submits: it sees the old promise, and
 * does not wake. The owner must look once more after raising it.
 */
START_TEST(trap_5_entry_under_the_old_promise_is_found_by_the_second_look)
{
	for (unsigned i = 0; i < 5; i++) {
		struct rig rig = rig_open(8);
		uint64_t now_ns = timerhub_now(rig.hub);
		uint64_t wakes;

		(void)arm_at(&rig, now_ns + FAR, 'U');
		(void)arm_at(&rig, now_ns + 30 * MS, 'X');
		owner_settles(rig.hub);
		owner_stop_at(TEST_POINT_OWNER_BEFORE_PROMISE, 1);
		owner_wait_stopped();
		expect_event(&rig, 'X');
		wakes = stats_of(rig.hub).submit_wakes;
		(void)arm_at(&rig, timerhub_now(rig.hub) + i * MS, 'Y');
		/* Else this would prove nothing. */
		expect_eq(stats_of(rig.hub).submit_wakes, wakes);
		owner_release();
		expect_event(&rig, 'Y');
		expect_nothing(&rig);
		rig_close(&rig);
	}
}
END_TEST

/* The same for the timer that is moved earlier, and for the owner stopped at any of its points. */
START_TEST(trap_5_whatever_is_submitted_to_a_stopped_owner_is_found)
{
	static const enum test_point points[] = { TEST_POINT_OWNER_BEFORE_INBOX,
		                                  TEST_POINT_OWNER_BEFORE_PUBLISH,
		                                  TEST_POINT_OWNER_BEFORE_PROMISE,
		                                  TEST_POINT_OWNER_AFTER_PROMISE };

	for (unsigned i = 0; i < COUNT_OF(points); i++) {
		struct rig rig = rig_open(8);
		uint64_t now_ns = timerhub_now(rig.hub);
		timerhub_timer moved = arm_at(&rig, now_ns + FAR, 'M');
		timerhub_timer gone = arm_at(&rig, now_ns + 40 * MS, 'G');

		expect_context("point", points[i], 0);
		(void)arm_at(&rig, now_ns + 30 * MS, 'X');
		owner_settles(rig.hub);
		owner_stop_at(points[i], 1);
		owner_wait_stopped();
		expect_eq(timerhub_cancel(rig.hub, gone), 0);
		(void)arm_at(&rig, timerhub_now(rig.hub) + 2 * MS, 'Y');
		expect_eq(timerhub_rearm(rig.hub, moved, 4 * MS, 0), 0);
		owner_release();
		expect_event(&rig, 'X');
		expect_event(&rig, 'Y');
		expect_event(&rig, 'M');
		expect_nothing(&rig);
		rig_close(&rig);
	}
}
END_TEST

/*
 * Law 5: the clock is read, then the inbox is emptied. The owner is stopped between the two; a
 * timer is armed that is due before the one that the owner has; when it goes on, both are due. The
 * other way round it would expire, by a later reading, the one that it has, and find the earlier
 * one next.
 */
START_TEST(law_5_timer_armed_between_the_clock_and_the_inbox_comes_in_order)
{
	struct rig rig = rig_open(8);
	uint64_t now_ns = timerhub_now(rig.hub);

	(void)arm_at(&rig, now_ns + 150 * MS, 'X');
	owner_settles(rig.hub);
	owner_stop_at(TEST_POINT_OWNER_BEFORE_INBOX, 1);
	(void)arm_at(&rig, now_ns + 140 * MS, 'W'); /* wakes it */
	owner_wait_stopped();
	(void)arm_at(&rig, now_ns + 130 * MS, 'V');
	sleep_ns(now_ns + 160 * MS - timerhub_now(rig.hub));
	owner_release();
	expect_event(&rig, 'V');
	expect_event(&rig, 'W');
	expect_event(&rig, 'X');
	expect_nothing(&rig);
	rig_close(&rig);
}
END_TEST

/* Law 5 again, with everything in one pass: what is found in the inbox is put among what is due. */
START_TEST(law_5_inbox_and_schedule_come_out_as_one_sequence)
{
	struct rig rig = rig_open(16);
	uint64_t now_ns = timerhub_now(rig.hub);

	for (unsigned i = 0; i < 10; i += 2)
		(void)arm_at(&rig, now_ns + 60 * MS + i * MS, i);
	owner_settles(rig.hub);
	owner_stop_at(TEST_POINT_OWNER_BEFORE_INBOX, 1);
	(void)arm_at(&rig, now_ns + 50 * MS, 100); /* wakes it */
	owner_wait_stopped();
	for (unsigned i = 1; i < 10; i += 2)
		(void)arm_at(&rig, now_ns + 60 * MS + i * MS, i);
	sleep_ns(now_ns + 80 * MS - timerhub_now(rig.hub));
	owner_release();
	expect_event(&rig, 100);
	for (unsigned i = 0; i < 10; i++)
		expect_event(&rig, i);
	expect_nothing(&rig);
	rig_close(&rig);
}
END_TEST

/*
 * A queue is closed while the owner has one of its timers in hand, and has put another, not yet
 * published, into its outbox. The closer must wait until the pass is over (the address sanitizer
 * tells if it does not), and no timer comes out.
 */
static void *close_queue(void *arg)
{
	timerhub_queue_close(arg);
	return NULL;
}

START_TEST(queue_closes_under_a_stopped_owner)
{
	struct rig rig = rig_open(8);
	struct rig other = { .hub = rig.hub };
	uint64_t at_ns = timerhub_now(rig.hub) + 30 * MS;
	pthread_t closer;

	expect_eq(timerhub_queue_open(rig.hub, &other.queue, NULL), 0);
	for (unsigned i = 0; i < 3; i++)
		(void)arm_at(&other, at_ns, 'X');
	owner_settles(rig.hub);
	owner_stop_at(TEST_POINT_OWNER_BEFORE_PUBLISH, 2);
	owner_wait_stopped();
	thread_start(&closer, close_queue, other.queue);
	sleep_ns(20 * MS); /* let it come to where it must wait */
	owner_release();
	thread_join(closer);
	(void)arm_at(&rig, timerhub_now(rig.hub) + MS, 'Z');
	expect_event(&rig, 'Z');
	expect_nothing(&rig);
	expect_eq(stats_of(rig.hub).live, 0);
	rig_close(&rig);
}
END_TEST

int main(int argc, char **argv)
{
	puppets_begin("traps of the owner", argc, argv);
	tests_add(trap_5_entry_under_the_old_promise_is_found_by_the_second_look, 30);
	tests_add(trap_5_whatever_is_submitted_to_a_stopped_owner_is_found, 30);
	tests_add(law_5_timer_armed_between_the_clock_and_the_inbox_comes_in_order, 30);
	tests_add(law_5_inbox_and_schedule_come_out_as_one_sequence, 30);
	tests_add(queue_closes_under_a_stopped_owner, 30);
	return tests_run();
}
