/* SPDX-License-Identifier: MIT */
/*
 * Trap 5 and law 5: the owner is stopped between the steps of its round (a pass) while callers arm
 * timers.
 */
#include "stopped_thread.h"

#include "timer/timer.h"

/*
 * Makes the owner stop when it reaches the point for the nth time from now on. Returns false if the
 * time `at_ns` has already passed.
 */
static bool owner_stops_before(struct rig *rig, enum test_point point, int nth, uint64_t at_ns)
{
	owner_looks(rig);
	owner_stop_at(point, nth);
	if (timerhub_now(rig->hub) < at_ns)
		return true;
	owner_stop_at_nothing();
	rig_close(rig);
	return false;
}

/*
 * Trap 5: the earliest timer of the owner has expired, and the next timer is far away. The owner's
 * promise (the time by which it looks at the inbox) is now in the past. Before the owner raises its
 * promise, a caller arms a timer, sees the old promise, and does not wake the owner. The owner must
 * look at the inbox once more after it has raised its promise.
 */
static bool check_second_look(uint64_t margin_ns)
{
	struct rig rig = rig_open(8);
	uint64_t at_ns = timerhub_now(rig.hub) + margin_ns;
	uint64_t wakes;
	bool spared;

	(void)arm_at(rig.queue, at_ns + FAR, 'U');
	(void)arm_at(rig.queue, at_ns, 'X');
	if (!owner_stops_before(&rig, TEST_POINT_OWNER_BEFORE_PROMISE, 1, at_ns))
		return false;
	owner_wait_stopped();
	expect_event(&rig, 'X');
	wakes = stats_of(rig.hub).submit_wakes;
	(void)arm_at(rig.queue, timerhub_now(rig.hub) + MS, 'Y');
	spared = stats_of(rig.hub).submit_wakes == wakes;
	owner_release();
	expect_event(&rig, 'Y');
	expect_nothing(&rig);
	rig_close(&rig);
	return spared; /* if false, the caller has woken the owner, and the test proves nothing */
}

START_TEST(trap_5_entry_under_the_old_promise_is_found_by_the_second_look)
{
	for (unsigned i = 0; i < 3; i++)
		until_in_time(check_second_look, MARGIN);
}
END_TEST

/*
 * The owner is stopped at each point of its round in turn, while callers arm timers. The owner must
 * find every slot that the callers push during its stop.
 */
static enum test_point stopped_at;

static bool check_submitted(uint64_t margin_ns)
{
	struct rig rig = rig_open(8);
	uint64_t at_ns = timerhub_now(rig.hub) + margin_ns;
	timerhub_timer moved = arm_at(rig.queue, at_ns + FAR, 'M');
	timerhub_timer gone = arm_at(rig.queue, at_ns + FAR / 2, 'G');

	(void)arm_at(rig.queue, at_ns, 'X');
	if (!owner_stops_before(&rig, stopped_at, 1, at_ns))
		return false;
	owner_wait_stopped();
	expect_eq(timerhub_cancel(rig.hub, gone), 0);
	(void)arm_at(rig.queue, timerhub_now(rig.hub) + 2 * MS, 'Y');
	owner_release();
	expect_event(&rig, 'X');
	expect_event(&rig, 'Y');
	expect_eq(timerhub_rearm(rig.hub, moved, 2 * MS, 0), 0);
	expect_event(&rig, 'M');
	expect_nothing(&rig);
	rig_close(&rig);
	return true;
}

START_TEST(trap_5_whatever_is_submitted_to_a_stopped_owner_is_found)
{
	static const enum test_point points[] = { TEST_POINT_OWNER_BEFORE_INBOX,
		                                  TEST_POINT_OWNER_BEFORE_PUBLISH,
		                                  TEST_POINT_OWNER_BEFORE_PROMISE,
		                                  TEST_POINT_OWNER_AFTER_PROMISE };

	for (unsigned i = 0; i < COUNT_OF(points); i++) {
		stopped_at = points[i];
		until_in_time(check_submitted, MARGIN);
	}
}
END_TEST

/*
 * Law 5: the owner reads the clock first, and empties the inbox after that. The test stops the
 * owner after its reading of the clock. While the owner is stopped, the test arms timers that are
 * due before, between and after the scheduled timers. When all timers are due, the owner continues.
 * If the owner read the clock after it emptied the inbox, it would deliver the scheduled timers
 * first. The new timers would come in the next round, in the wrong order.
 */
static bool check_order(uint64_t margin_ns)
{
	struct rig rig = rig_open(16);
	uint64_t at_ns = timerhub_now(rig.hub) + margin_ns;
	bool in_time;

	for (unsigned i = 2; i < 10; i += 2)
		(void)arm_at(rig.queue, at_ns + i * MS, i);
	if (!owner_stops_before(&rig, TEST_POINT_OWNER_BEFORE_INBOX, 1, at_ns))
		return false;
	(void)arm_at(rig.queue, at_ns + 1 * MS, 1); /* timer 1 wakes the owner */
	owner_wait_stopped();
	for (unsigned i = 3; i < 10; i += 2)
		(void)arm_at(rig.queue, at_ns + i * MS, i);
	(void)arm_at(rig.queue, at_ns, 0);
	/* If timer 0 was already due when it was armed, law 5 says nothing about the order. */
	in_time = timerhub_now(rig.hub) < at_ns;
	if (in_time)
		sleep_ns(at_ns + 15 * MS - timerhub_now(rig.hub));
	owner_release();
	for (unsigned i = 0; i < 10 && in_time; i++)
		expect_event(&rig, i);
	if (in_time)
		expect_nothing(&rig);
	rig_close(&rig);
	return in_time;
}

START_TEST(law_5_timers_armed_between_the_clock_and_the_inbox_come_in_order)
{
	for (unsigned i = 0; i < 3; i++)
		until_in_time(check_order, MARGIN);
}
END_TEST

/*
 * A queue is closed while the owner is in the middle of its round (a pass). The owner has put an
 * expiry of the queue into the outbox. The owner is stopped while it expires a second timer of the
 * queue, and has published neither expiry. The closing thread must wait for the end of the owner's
 * round, and no timer of the queue may be delivered. If the closing thread did not wait,
 * AddressSanitizer would report a use of freed memory.
 */
static void *close_queue(void *arg)
{
	timerhub_queue_close(arg);
	return NULL;
}

static bool check_close(uint64_t margin_ns)
{
	struct rig rig = rig_open(8);
	struct rig other = { .hub = rig.hub };
	uint64_t at_ns = timerhub_now(rig.hub) + margin_ns;
	pthread_t closer;

	expect_eq(timerhub_queue_open(rig.hub, &other.queue, NULL), 0);
	for (unsigned i = 0; i < 3; i++)
		(void)arm_at(other.queue, at_ns, 'X');
	if (!owner_stops_before(&rig, TEST_POINT_OWNER_BEFORE_PUBLISH, 2, at_ns))
		return false;
	owner_wait_stopped();
	thread_start(&closer, close_queue, other.queue);
	sleep_ns(20 * MS); /* gives the closing thread time to begin its wait for the owner */
	owner_release();
	thread_join(closer);
	(void)arm_at(rig.queue, timerhub_now(rig.hub) + MS, 'Z');
	expect_event(&rig, 'Z');
	expect_nothing(&rig);
	expect_eq(stats_of(rig.hub).live, 0);
	rig_close(&rig);
	return true;
}

START_TEST(queue_closes_under_a_stopped_owner)
{
	until_in_time(check_close, MARGIN);
}
END_TEST

/*
 * Law 9: the owner has made the fd readable, and is stopped before it records that it signalled the
 * fd. If a drain finds no event, it must make the fd unreadable. Outside of tests, the kernel may
 * stop the owner at this point, and give the owner's CPU to the woken consumer.
 */
static bool check_cleared(uint64_t margin_ns)
{
	struct rig rig = rig_open(8);
	uint64_t at_ns = timerhub_now(rig.hub) + margin_ns;
	struct timerhub_event event;

	(void)arm_at(rig.queue, at_ns, 'X');
	if (!owner_stops_before(&rig, TEST_POINT_RING_BEFORE_COUNT, 1, at_ns))
		return false;
	owner_wait_stopped();
	expect(queue_readable(rig.queue));
	expect_event(&rig, 'X');
	expect_eq(timerhub_drain(rig.queue, &event, 1), 0);
	expect(!queue_readable(rig.queue));
	owner_release();
	expect_eq(timerhub_after(rig.queue, 0, 'Y', NULL), 0);
	owner_settles(rig.hub);
	expect(queue_readable(rig.queue));
	expect_event(&rig, 'Y');
	expect_nothing(&rig);
	rig_close(&rig);
	return true;
}

START_TEST(law_9_drain_clears_what_a_stopped_owner_has_rung)
{
	until_in_time(check_cleared, MARGIN);
}
END_TEST

static void owner_expires(struct timerhub *hub, uint64_t count)
{
	uint64_t until_ns = timerhub_now(hub) + ARRIVES;

	while (stats_of(hub).expired < count) {
		expect(timerhub_now(hub) < until_ns);
		sleep_ns(MS);
	}
}

/*
 * Against the contract, a thread arms a timer on a queue during the queue's close. The timer is in
 * a slot that the closing thread has already visited, and expires at once. The library must not
 * fail, and the slot of this timer must become free.
 */
START_TEST(queue_closes_under_a_late_producer)
{
	struct rig rig = rig_open(8);
	struct rig other = { .hub = rig.hub };
	struct stopped_thread closer = { .deed = { .what = CLOSE_QUEUE } };
	timerhub_timer timers[8];
	unsigned lowest = 0, highest = 0;

	expect_eq(timerhub_queue_open(rig.hub, &other.queue, NULL), 0);
	for (unsigned i = 0; i < COUNT_OF(timers); i++) {
		timers[i] = arm_at(rig.queue, timerhub_now(rig.hub) + FAR, 'R');
		lowest = handle_slot(timers[i]) < handle_slot(timers[lowest]) ? i : lowest;
		highest = handle_slot(timers[i]) > handle_slot(timers[highest]) ? i : highest;
	}
	expect_eq(timerhub_cancel(rig.hub, timers[highest]), 0);
	(void)arm_at(other.queue, timerhub_now(rig.hub) + FAR, 'L');
	expect_eq(timerhub_cancel(rig.hub, timers[lowest]), 0);
	closer.deed.queue = other.queue;
	stopped_thread_start(&closer, TEST_POINT_CANCEL_BEFORE_FREE);
	(void)arm_at(other.queue, timerhub_now(rig.hub), 'P');
	owner_expires(rig.hub, 1);
	stopped_thread_finish(&closer);
	expect_eq(stats_of(rig.hub).live, COUNT_OF(timers) - 2);
	expect_nothing(&rig);
	rig_close(&rig);
}
END_TEST

/*
 * In the statistics, the lateness of an event ends when the owner signals the event. The lateness
 * does not end at the beginning of the owner's round. The owner is stopped between its reading of
 * the clock and the first expiry. More events are due than the owner publishes in one batch.
 */
#define CROWD 70
#define STOPPED_BITS 25 /* the owner is stopped for 2 * 2^25 ns */

static bool check_lateness(uint64_t margin_ns)
{
	struct rig rig = rig_open(2 * CROWD);
	uint64_t at_ns = timerhub_now(rig.hub) + margin_ns;
	struct timerhub_stats stats;
	uint64_t late = 0;

	for (unsigned i = 0; i < CROWD; i++)
		(void)arm_at(rig.queue, at_ns, i);
	if (!owner_stops_before(&rig, TEST_POINT_OWNER_BEFORE_PUBLISH, 1, at_ns))
		return false;
	owner_wait_stopped();
	sleep_ns(UINT64_C(2) << STOPPED_BITS);
	owner_release();
	for (unsigned taken = 0; taken < CROWD;) {
		struct timerhub_event events[CROWD];
		int count = timerhub_wait(rig.queue, events, CROWD, ARRIVES);

		expect_cmp(count, >, 0);
		taken += (unsigned)count;
	}
	stats = stats_of(rig.hub);
	for (unsigned i = STOPPED_BITS; i < TIMERHUB_LATENESS_BUCKETS; i++)
		late += stats.lateness[i];
	expect_eq(late, CROWD);
	rig_close(&rig);
	return true;
}

START_TEST(lateness_is_that_of_the_telling)
{
	until_in_time(check_lateness, MARGIN);
}
END_TEST

int main(int argc, char **argv)
{
	stopped_threads_begin("traps of the owner", argc, argv);
	tests_add(trap_5_entry_under_the_old_promise_is_found_by_the_second_look, 120);
	tests_add(trap_5_whatever_is_submitted_to_a_stopped_owner_is_found, 120);
	tests_add(law_5_timers_armed_between_the_clock_and_the_inbox_come_in_order, 120);
	tests_add(law_9_drain_clears_what_a_stopped_owner_has_rung, 60);
	tests_add(queue_closes_under_a_stopped_owner, 120);
	tests_add(queue_closes_under_a_late_producer, 120);
	tests_add(lateness_is_that_of_the_telling, 120);
	return tests_run();
}
