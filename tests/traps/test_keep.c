/* SPDX-License-Identifier: MIT */
/*
 * Kept timers, the walk over timers, and the stop of a queue. Threads are stopped in the middle of
 * one call while others continue. On manual hubs.
 */
#include "puppet.h"

#include "hub/hub.h"

static struct puppet puppet_of(struct rig *rig, enum deed_kind what, timerhub_timer timer,
                               uint64_t at_ns)
{
	return (struct puppet){ .deed = { .what = what,
		                          .hub = rig->hub,
		                          .queue = rig->queue,
		                          .timer = timer,
		                          .max = 8,
		                          .at_ns = at_ns } };
}

static timerhub_timer arm_kept(struct rig *rig, uint64_t at_ns, uint64_t data)
{
	struct timerhub_spec spec = { .size = sizeof(spec),
		                      .flags = TIMERHUB_KEEP | TIMERHUB_ABSOLUTE,
		                      .expires_ns = at_ns,
		                      .data = data };
	timerhub_timer timer = 0;

	expect_eq(timerhub_arm(rig->queue, &spec, &timer), 0);
	return timer;
}

static int move(struct rig *rig, timerhub_timer timer, uint64_t at_ns)
{
	return timerhub_rearm(rig->hub, timer, at_ns, TIMERHUB_ABSOLUTE);
}

/* A kept timer 'K' that has expired at 64, and a thread that is stopped in a call on it. */
struct scene {
	struct rig rig;
	timerhub_timer timer;
	struct puppet caller;
};

/* Stops the thread before its call changes the timer, which is pending or idle. */
static void scene_begin(struct scene *scene, uint32_t timers_max, bool idle, enum deed_kind what,
                        uint64_t at_ns)
{
	scene->rig = rig_manual(timers_max);
	scene->timer = arm_kept(&scene->rig, 64, 'K');
	advance(scene->rig.hub, 64);
	if (idle)
		expect_eq(expect_event(&scene->rig, 'K').expires_ns, 64);
	scene->caller = puppet_of(&scene->rig, what, scene->timer, at_ns);
	puppet_start(&scene->caller,
	             what == DRAIN ? TEST_POINT_CONSUME_BEFORE_CAS : TEST_POINT_REARM_BEFORE_CAS);
}

/*
 * A re-arm is about to withdraw the expiry, which is delivered first. The re-arm finds the timer
 * idle.
 */
START_TEST(law_4_delivered_under_a_rearm_is_idle_for_it)
{
	struct scene scene;

	scene_begin(&scene, 8, false, REARM, 640);
	expect_event(&scene.rig, 'K');
	puppet_finish(&scene.caller);
	expect_eq(scene.caller.deed.result, 1);
	expect_at(&scene.rig, 'K', 640);
	rig_close(&scene.rig);
}
END_TEST

/* A re-arm withdraws the expiry that a consumer is about to deliver, and returns 0. */
START_TEST(law_4_withdrawn_under_a_delivery_is_not_delivered)
{
	struct scene scene;

	scene_begin(&scene, 8, false, DRAIN, 0);
	expect_eq(move(&scene.rig, scene.timer, 640), 0);
	puppet_finish(&scene.caller);
	expect_eq(scene.caller.deed.result, 0);
	expect_at(&scene.rig, 'K', 640);
	rig_close(&scene.rig);
}
END_TEST

/*
 * As above, but another consumer takes the new expiry before the first continues. An idle timer is
 * not delivered.
 */
START_TEST(law_2_idle_under_a_delivery_is_not_delivered)
{
	struct scene scene;

	scene_begin(&scene, 8, false, DRAIN, 0);
	expect_eq(move(&scene.rig, scene.timer, 128), 0);
	expect_at(&scene.rig, 'K', 128);
	puppet_finish(&scene.caller);
	expect_eq(scene.caller.deed.result, 0);
	expect_eq(stats_of(scene.rig.hub).delivered, 1);
	expect_eq(move(&scene.rig, scene.timer, 640), 1);
	expect_at(&scene.rig, 'K', 640);
	rig_close(&scene.rig);
}
END_TEST

/*
 * An idle timer is started twice, one start after the other. A whole cycle passes during the first
 * re-arm.
 */
START_TEST(law_4_started_and_idle_again_under_a_rearm)
{
	for (unsigned turns = 1; turns <= 8; turns++) {
		struct scene scene;

		scene_begin(&scene, 8, true, REARM, 6400);
		for (unsigned i = 1; i <= turns; i++) {
			expect_eq(move(&scene.rig, scene.timer, 64 + 64 * i), 1);
			expect_at(&scene.rig, 'K', 64 + 64 * i);
		}
		puppet_finish(&scene.caller);
		expect_eq(scene.caller.deed.result, 1);
		expect_eq(move(&scene.rig, scene.timer, 6464), 0);
		expect_at(&scene.rig, 'K', 6464);
		expect_nothing(&scene.rig);
		rig_close(&scene.rig);
	}
}
END_TEST

/* The slot has a later timer, kept and idle. A re-arm of the earlier timer must not start it. */
START_TEST(law_10_rearm_of_a_timer_that_ended_starts_no_other)
{
	struct scene scene;
	timerhub_timer next;

	scene_begin(&scene, 1, true, REARM, 6400);
	expect_eq(timerhub_cancel(scene.rig.hub, scene.timer), 0);
	next = arm_kept(&scene.rig, 128, 'N');
	expect_at(&scene.rig, 'N', 128);
	puppet_finish(&scene.caller);
	expect_eq(scene.caller.deed.result, -ENOENT);
	expect_eq(move(&scene.rig, next, 192), 1);
	expect_at(&scene.rig, 'N', 192);
	rig_close(&scene.rig);
}
END_TEST

/* ---- the walk over timers ---- */

static int count_shown(const struct timerhub_event *timer, uint64_t interval_ns, void *context)
{
	struct deed *deed = context;

	(void)interval_ns;
	deed->events[deed->result++] = *timer;
	return 0;
}

START_TEST(each_shows_one_timer_that_it_has_read)
{
	struct rig rig = rig_manual(1);
	struct puppet walker = puppet_of(&rig, EACH, arm_kept(&rig, 64, 'K'), 0);
	timerhub_timer next;

	walker.deed.each = count_shown;
	puppet_start(&walker, TEST_POINT_EACH_BEFORE_CAS);
	expect_eq(timerhub_cancel(rig.hub, walker.deed.timer), 0);
	next = arm_at(rig.queue, 640, 'N');
	puppet_finish(&walker);
	expect_eq(walker.deed.result, 1);
	expect_eq(walker.deed.events[0].data, 'N');
	expect_eq(walker.deed.events[0].timer, next);
	expect_eq(walker.deed.events[0].expires_ns, 640);
	rig_close(&rig);
}
END_TEST

START_TEST(each_shows_no_timer_that_ended)
{
	struct rig rig = rig_manual(1);
	struct puppet walker = puppet_of(&rig, EACH, arm_at(rig.queue, 64, 'K'), 0);

	walker.deed.each = count_shown;
	puppet_start(&walker, TEST_POINT_EACH_BEFORE_CAS);
	expect_at(&rig, 'K', 64);
	puppet_finish(&walker);
	expect_eq(walker.deed.result, 0);
	rig_close(&rig);
}
END_TEST

/* ---- the stop of a queue ---- */

static const enum test_point waits[] = { TEST_POINT_WAIT_FOUND_NOTHING,
	                                 TEST_POINT_WAIT_BEFORE_SLEEP };

START_TEST(stop_is_seen_by_a_wait_about_to_block)
{
	for (unsigned i = 0; i < COUNT_OF(waits); i++) {
		struct rig rig = rig_manual(8);
		struct puppet waiter = puppet_of(&rig, WAIT, 0, TIMERHUB_NEVER);

		puppet_start(&waiter, waits[i]);
		timerhub_queue_stop(rig.queue);
		puppet_finish(&waiter);
		expect_eq(waiter.deed.result, -ESHUTDOWN);
		rig_close(&rig);
	}
}
END_TEST

/* The waiter has found no event, a timer expires, and then the queue is stopped. */
START_TEST(stop_leaves_nothing_that_expired_before_it)
{
	for (unsigned i = 0; i < COUNT_OF(waits); i++) {
		struct rig rig = rig_manual(8);
		struct puppet waiter = puppet_of(&rig, WAIT, 0, TIMERHUB_NEVER);

		(void)arm_at(rig.queue, 64, 'X');
		puppet_start(&waiter, waits[i]);
		advance(rig.hub, 64);
		timerhub_queue_stop(rig.queue);
		puppet_finish(&waiter);
		expect_eq(waiter.deed.result, 1);
		expect_eq(waiter.deed.events[0].data, 'X');
		rig_close(&rig);
	}
}
END_TEST

/* The stop is half done. The waiter returns by itself, and the wake reaches no waiter. */
START_TEST(stop_half_done_is_a_stop)
{
	struct rig rig = rig_manual(8);
	struct puppet stopper = puppet_of(&rig, STOP, 0, 0);
	struct timerhub_event event;

	puppet_start(&stopper, TEST_POINT_INTERRUPT_HALFWAY);
	expect_eq(timerhub_wait(rig.queue, &event, 1, TIMERHUB_NEVER), -ESHUTDOWN);
	puppet_finish(&stopper);
	expect_eq(timerhub_wait(rig.queue, &event, 1, TIMERHUB_NEVER), -ESHUTDOWN);
	rig_close(&rig);
}
END_TEST

/*
 * The queue is full of withdrawn expiries. Let the owner take all handles out, to put back the one
 * valid handle, and stop there.
 */
static void stop_with_all_taken_out(struct rig *rig, struct puppet *owner)
{
	uint64_t cells = rig->queue->outbox.mask + 1;

	(void)arm_at(rig->queue, 1, 'X');
	for (uint64_t at_ns = 1; at_ns < cells; at_ns++) {
		timerhub_timer timer = arm_at(rig->queue, at_ns, 'W');

		advance(rig->hub, at_ns * 64);
		expect_eq(timerhub_cancel(rig->hub, timer), 0);
	}
	expect_eq(outbox_count(&rig->queue->outbox), cells);
	(void)arm_at(rig->queue, 0, 'Y');
	*owner = puppet_of(rig, ADVANCE, 0, cells * 64);
	puppet_start(owner, TEST_POINT_OUTBOX_TAKEN_OUT);
}

/* While the owner makes room, a stopped queue does not count as empty, with any timeout. */
START_TEST(stop_leaves_nothing_that_the_owner_puts_back)
{
	static const uint64_t timeouts_ns[] = { 0, TIMERHUB_NEVER };

	for (unsigned i = 0; i < COUNT_OF(timeouts_ns); i++) {
		struct rig rig = rig_manual(8);
		struct puppet waiter = puppet_of(&rig, WAIT, 0, timeouts_ns[i]);
		struct puppet owner;

		stop_with_all_taken_out(&rig, &owner);
		timerhub_queue_stop(rig.queue);
		puppet_start(&waiter, TEST_POINT_WAIT_FOUND_NOTHING);
		puppet_go_on(&waiter, TEST_POINT_WAIT_BEFORE_SLEEP);
		puppet_go_on(&waiter, TEST_POINT_WAIT_FOUND_NOTHING); /* the waiter looks again */
		puppet_finish(&owner);
		puppet_finish(&waiter);
		expect_eq(waiter.deed.result, 2);
		expect_eq(waiter.deed.events[0].data, 'X');
		expect_eq(waiter.deed.events[1].data, 'Y');
		expect_eq(timerhub_wait(rig.queue, waiter.deed.events, 8, 0), -ESHUTDOWN);
		rig_close(&rig);
	}
}
END_TEST

/* A drain during that time finds no event, and afterwards the fd becomes readable. */
START_TEST(law_9_what_the_owner_puts_back_is_told_again)
{
	struct rig rig = rig_manual(8);
	struct timerhub_event events[8];
	struct puppet owner;

	stop_with_all_taken_out(&rig, &owner);
	expect_eq(timerhub_drain(rig.queue, events, 8), 0);
	expect(!queue_readable(rig.queue));
	puppet_finish(&owner);
	expect(queue_readable(rig.queue));
	expect_eq(timerhub_drain(rig.queue, events, 8), 2);
	expect(!queue_readable(rig.queue));
	rig_close(&rig);
}
END_TEST

int main(int argc, char **argv)
{
	puppets_begin("traps_keep", argc, argv);
	tests_add(law_4_delivered_under_a_rearm_is_idle_for_it, 60);
	tests_add(law_4_withdrawn_under_a_delivery_is_not_delivered, 60);
	tests_add(law_2_idle_under_a_delivery_is_not_delivered, 60);
	tests_add(law_4_started_and_idle_again_under_a_rearm, 60);
	tests_add(law_10_rearm_of_a_timer_that_ended_starts_no_other, 60);
	tests_add(each_shows_one_timer_that_it_has_read, 60);
	tests_add(each_shows_no_timer_that_ended, 60);
	tests_add(stop_is_seen_by_a_wait_about_to_block, 60);
	tests_add(stop_leaves_nothing_that_expired_before_it, 60);
	tests_add(stop_half_done_is_a_stop, 60);
	tests_add(stop_leaves_nothing_that_the_owner_puts_back, 60);
	tests_add(law_9_what_the_owner_puts_back_is_told_again, 60);
	return tests_run();
}
