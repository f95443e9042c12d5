/* SPDX-License-Identifier: MIT */
/*
 * Kept timers, the walk over timers, and the stop of a queue: threads stopped in the middle of one
 * call while others go on. Hubs moved by hand.
 */
#include "puppet.h"

#include "hub.h"

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

/* The state word of the first slot. */
static uint64_t word_of(const struct rig *rig)
{
	return u64_load_relaxed(&rig->hub->arena.timers.hot[0].word);
}

/* What becomes of a kept timer before a call on it is stopped. */
enum kept { FAR_AWAY, PENDING, IDLE };

/* Arms a kept timer, and has it expire at `now_ns`, and delivered, as far as it is to go. */
static timerhub_timer arm_kept_until(struct rig *rig, enum kept state, uint64_t data,
                                     uint64_t now_ns)
{
	timerhub_timer timer = arm_kept(rig, state == FAR_AWAY ? TIMERHUB_NEVER : 64, data);

	if (state != FAR_AWAY)
		advance(rig->hub, now_ns);
	if (state == IDLE)
		expect_eq(expect_event(rig, data).expires_ns, 64);
	return timer;
}

/* A timer 'K', and a thread that is stopped in a call on it. */
struct scene {
	struct rig rig;
	timerhub_timer timer;
	struct puppet caller;
	uint64_t word; /* of the first slot, when the thread was stopped */
};

/* Stops a thread in its call on the scene's timer, before the call changes the timer's word. */
static void scene_stop(struct scene *scene, enum deed_kind what, uint64_t at_ns)
{
	enum test_point point = what == DRAIN    ? TEST_POINT_CONSUME_BEFORE_CAS
	                        : what == CANCEL ? TEST_POINT_CANCEL_BEFORE_CAS
	                                         : TEST_POINT_REARM_BEFORE_CAS;

	scene->caller = puppet_of(&scene->rig, what, scene->timer, at_ns);
	scene->word = word_of(&scene->rig);
	puppet_start(&scene->caller, point);
}

static void scene_begin(struct scene *scene, uint32_t timers_max, enum kept state,
                        enum deed_kind what, uint64_t at_ns)
{
	scene->rig = rig_manual(timers_max);
	scene->timer = arm_kept_until(&scene->rig, state, 'K', 64);
	scene_stop(scene, what, at_ns);
}

/* The expiry that a re-arm was about to withdraw is delivered first: then it finds it idle. */
START_TEST(law_4_delivered_under_a_rearm_is_idle_for_it)
{
	struct scene scene;

	scene_begin(&scene, 8, PENDING, REARM, 640);
	expect_event(&scene.rig, 'K');
	puppet_finish(&scene.caller);
	expect_eq(scene.caller.deed.result, 1);
	expect_at(&scene.rig, 'K', 640);
	rig_close(&scene.rig);
}
END_TEST

/* The expiry that a consumer has in hand is withdrawn, by a re-arm that says 0. */
START_TEST(law_4_withdrawn_under_a_delivery_is_not_delivered)
{
	struct scene scene;

	scene_begin(&scene, 8, PENDING, DRAIN, 0);
	expect_eq(move(&scene.rig, scene.timer, 640), 0);
	puppet_finish(&scene.caller);
	expect_eq(scene.caller.deed.result, 0);
	expect_at(&scene.rig, 'K', 640);
	rig_close(&scene.rig);
}
END_TEST

/* The same, and another takes it before the first goes on: what idles is not delivered. */
START_TEST(law_2_idle_under_a_delivery_is_not_delivered)
{
	struct scene scene;

	scene_begin(&scene, 8, PENDING, DRAIN, 0);
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

/* Two starts of an idle timer, one after the other: a whole turn goes by under the first. */
START_TEST(law_4_started_and_idle_again_under_a_rearm)
{
	for (unsigned turns = 1; turns <= 8; turns++) {
		struct scene scene;

		scene_begin(&scene, 8, IDLE, REARM, 6400);
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

/* A later life in the slot, kept and idle, is not started by a re-arm of the one before. */
START_TEST(law_10_rearm_of_a_timer_that_ended_starts_no_other)
{
	struct scene scene;
	timerhub_timer next;

	scene_begin(&scene, 1, IDLE, REARM, 6400);
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

/*
 * The word of the slot comes back to the bit while a re-arm is held up, in the life of another kept
 * timer that idles: what was hit by mistake idles again, and its re-arm says so.
 */
START_TEST(law_10_an_idle_timer_hit_by_mistake_idles_again)
{
	unsigned hit = 0;

	for (unsigned lives = 1; lives <= 16; lives++) {
		struct scene scene;
		struct rig *rig = &scene.rig;

		scene_begin(&scene, 1, IDLE, REARM, TIMERHUB_NEVER);
		for (unsigned i = 0; i < lives; i++) {
			expect_eq(timerhub_cancel(rig->hub, scene.timer), 0);
			scene.timer = arm_kept(rig, 128 + 64 * i, 'N');
			expect_at(rig, 'N', 128 + 64 * i);
		}
		hit += word_of(rig) == scene.word;
		puppet_finish(&scene.caller);
		expect_eq(scene.caller.deed.result, -ENOENT);
		expect_eq(move(rig, scene.timer, 6400), 1);
		expect_at(rig, 'N', 6400);
		expect_eq(stats_of(rig->hub).live, 1);
		rig_close(rig);
	}
	expect(hit > 0); /* it came to that */
}
END_TEST

/*
 * The word of the slot comes back to the bit while a delivery is held up, as an expiry of a later
 * life, of which one of the two is kept: it is put back, expires again, and comes once.
 */
static void delivery_hits_a_later_life(bool kept_before, bool kept_later, unsigned lives,
                                       unsigned *hit)
{
	struct scene scene = { .rig = rig_manual(1) };
	struct rig *rig = &scene.rig;
	struct deed *deed = &scene.caller.deed;
	bool alike;

	scene.timer = kept_before ? arm_kept(rig, 64, 'A') : arm_at(rig->queue, 64, 'A');
	advance(rig->hub, 64);
	scene_stop(&scene, DRAIN, 0);
	for (unsigned i = 1; i <= lives; i++) {
		expect_eq(timerhub_cancel(rig->hub, scene.timer), 0);
		scene.timer = kept_later ? arm_kept(rig, 64, 'B') : arm_at(rig->queue, 64, 'B');
		advance(rig->hub, 64 + i);
	}
	alike = word_of(rig) == scene.word;
	*hit += alike;
	puppet_finish(&scene.caller);
	expect_eq(deed->result, alike ? 0 : 1); /* else it goes on to the later life's */
	advance(rig->hub, 128);
	if (alike)
		deed->events[0] = expect_event(rig, 'B');
	expect_eq(deed->events[0].timer, scene.timer);
	expect_nothing(rig);
	expect_eq(move(rig, scene.timer, 640), kept_later ? 1 : -ENOENT);
	expect_eq(timerhub_cancel(rig->hub, scene.timer), kept_later ? 0 : -ENOENT);
	expect_eq(stats_of(rig->hub).live, 0);
	rig_close(rig);
}

START_TEST(law_2_a_later_life_hit_by_a_delivery_comes_once)
{
	unsigned hit[2] = { 0, 0 };

	for (unsigned lives = 1; lives <= 16; lives++) {
		delivery_hits_a_later_life(false, true, lives, &hit[0]);
		delivery_hits_a_later_life(true, false, lives, &hit[1]);
	}
	expect(hit[0] > 0 && hit[1] > 0); /* it came to that */
}
END_TEST

/*
 * A call on a timer that has ended hits a later life, whose word came back to the bit: that of a
 * kept timer that is armed for never, or is idle, or waits to be delivered. The owner goes on to
 * an instant before the call can make it good.
 */
static void hit_later_life(enum deed_kind what, enum kept state, unsigned lives,
                           uint64_t meanwhile_ns, unsigned *hit)
{
	struct scene scene;
	struct rig *rig = &scene.rig;
	uint64_t left_ns;
	bool alike;

	scene_begin(&scene, 1, state, what, 6400);
	for (unsigned i = 1; i <= lives; i++) {
		expect_eq(timerhub_cancel(rig->hub, scene.timer), 0);
		scene.timer = arm_kept_until(rig, state, 'B', 64 + i);
	}
	alike = word_of(rig) == scene.word;
	*hit += alike;
	puppet_go_on_if_it_comes(&scene.caller, TEST_POINT_UNDO);
	expect_eq(atomic_load(&scene.caller.over), !alike);
	if (alike && meanwhile_ns > 0)
		advance(rig->hub, meanwhile_ns);
	puppet_finish(&scene.caller);
	expect_eq(scene.caller.deed.result, -ENOENT);
	advance(rig->hub, 12800);
	if (state == PENDING)
		expect_eq(expect_event(rig, 'B').expires_ns, 64);
	expect_nothing(rig);
	expect_eq(timerhub_remaining(rig->hub, scene.timer, &left_ns), 0);
	expect_eq(left_ns, UINT64_MAX);
	expect_eq(move(rig, scene.timer, 19200), state != FAR_AWAY);
	expect_at(rig, 'B', 19200);
	expect_eq(timerhub_cancel(rig->hub, scene.timer), 0);
	expect_eq(stats_of(rig->hub).live, 0);
	rig_close(rig);
}

START_TEST(law_10_a_kept_timer_hit_by_mistake_is_what_it_was)
{
	static const enum deed_kind calls[] = { REARM, CANCEL };
	static const uint64_t meanwhile_ns[] = { 0, 640, 6400 };

	for (unsigned i = 0; i < COUNT_OF(calls) * COUNT_OF(meanwhile_ns); i++) {
		enum deed_kind call = calls[i % COUNT_OF(calls)];
		uint64_t at_ns = meanwhile_ns[i / COUNT_OF(calls)];
		unsigned hit[3] = { 0, 0, 0 };

		for (unsigned lives = 1; lives <= 16; lives++) {
			hit_later_life(call, FAR_AWAY, lives, at_ns, &hit[0]);
			hit_later_life(call, IDLE, lives, at_ns, &hit[1]);
			hit_later_life(call, PENDING, lives, at_ns, &hit[2]);
		}
		expect(hit[0] > 0 && hit[1] > 0 && hit[2] > 0); /* it came to that */
	}
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

START_TEST(each_shows_the_life_that_it_has_read)
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

/* Also if the word has come back to the bit in a later life. */
START_TEST(each_shows_one_life_whatever_the_word)
{
	unsigned alike = 0;

	for (unsigned lives = 1; lives <= 16; lives++) {
		struct rig rig = rig_manual(1);
		timerhub_timer timer = arm_at(rig.queue, TIMERHUB_NEVER, 0);
		struct puppet walker = puppet_of(&rig, EACH, timer, 0);
		uint64_t word;

		walker.deed.each = count_shown;
		advance(rig.hub, 1);
		word = word_of(&rig);
		puppet_start(&walker, TEST_POINT_EACH_BEFORE_CAS);
		for (unsigned i = 1; i <= lives; i++) {
			expect_eq(timerhub_cancel(rig.hub, timer), 0);
			timer = arm_at(rig.queue, TIMERHUB_NEVER, i);
			advance(rig.hub, 1 + i);
		}
		alike += word_of(&rig) == word;
		puppet_finish(&walker);
		expect_eq(walker.deed.result, 1);
		expect_eq(walker.deed.events[0].timer, timer);
		expect_eq(walker.deed.events[0].data, lives);
		rig_close(&rig);
	}
	expect(alike > 0); /* it came to that */
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

/* The waiter has found nothing, something expires, and then the queue is stopped. */
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

/* The stop is half done: the waiter leaves by itself, and the wake is for nobody. */
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
 * Let the owner take everything out of the queue, which is full of withdrawn expiries, to put back
 * the one that is not, and stop there.
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

/* While the owner makes room, a stopped queue is not empty, whatever the timeout. */
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
		puppet_go_on(&waiter, TEST_POINT_WAIT_FOUND_NOTHING); /* it looks again */
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

/* A drain that falls into it finds nothing, and the fd then says that there is something. */
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
	tests_add(law_10_an_idle_timer_hit_by_mistake_idles_again, 60);
	tests_add(law_2_a_later_life_hit_by_a_delivery_comes_once, 60);
	tests_add(law_10_a_kept_timer_hit_by_mistake_is_what_it_was, 60);
	tests_add(each_shows_the_life_that_it_has_read, 60);
	tests_add(each_shows_one_life_whatever_the_word, 60);
	tests_add(each_shows_no_timer_that_ended, 60);
	tests_add(stop_is_seen_by_a_wait_about_to_block, 60);
	tests_add(stop_leaves_nothing_that_expired_before_it, 60);
	tests_add(stop_half_done_is_a_stop, 60);
	tests_add(stop_leaves_nothing_that_the_owner_puts_back, 60);
	tests_add(law_9_what_the_owner_puts_back_is_told_again, 60);
	return tests_run();
}
