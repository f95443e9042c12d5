/* SPDX-License-Identifier: MIT */
/*
 * Consumers, and the owner on the way to them, stopped between the steps of a delivery. Hubs moved
 * by hand: whoever advances is the owner.
 */
#include "puppet.h"

#ifndef TIMERHUB_WITHOUT_IO_URING
#include <liburing.h>
#endif
#include <stdio.h>
#include <string.h>

static struct puppet puppet_of(struct rig *rig, enum deed_kind what)
{
	return (struct puppet){ .deed = { .what = what,
		                          .hub = rig->hub,
		                          .queue = rig->queue,
		                          .max = 8,
		                          .at_ns = ARRIVES } };
}

static void expect_events(const struct puppet *puppet, unsigned count, const char *data)
{
	expect_eq(puppet->deed.result, count);
	for (unsigned i = 0; i < count; i++)
		expect_eq(puppet->deed.events[i].data, data[i]);
}

/* ---- law 9: the fd, while a consumer clears it ---- */

/*
 * Published after the queue was found empty and before the signal is cleared: found by looking
 * again.
 */
START_TEST(law_9_expiry_before_the_clear_is_found)
{
	struct rig rig = rig_manual(8);
	struct puppet drainer = puppet_of(&rig, DRAIN);

	(void)arm_at(&rig, 100, 'X');
	(void)arm_at(&rig, 200, 'Y');
	advance(&rig, 100);
	puppet_start(&drainer, TEST_POINT_CONSUME_BEFORE_CLEAR);
	advance(&rig, 200);
	puppet_finish(&drainer);
	expect_events(&drainer, 2, "XY");
	expect_nothing(&rig);
	rig_close(&rig);
}
END_TEST

START_TEST(law_9_expiry_after_the_clear_is_found_and_the_fd_is_cleared_again)
{
	struct rig rig = rig_manual(8);
	struct puppet drainer = puppet_of(&rig, DRAIN);

	(void)arm_at(&rig, 100, 'X');
	(void)arm_at(&rig, 200, 'Y');
	advance(&rig, 100);
	puppet_start(&drainer, TEST_POINT_CONSUME_AFTER_CLEAR);
	expect(!fd_readable(rig.queue));
	advance(&rig, 200);
	expect(fd_readable(rig.queue));
	puppet_finish(&drainer);
	expect_events(&drainer, 2, "XY");
	expect(!fd_readable(rig.queue));
	expect_nothing(&rig);
	rig_close(&rig);
}
END_TEST

/* A stopped drain does not keep another from taking, and must not clear what belongs to a third. */
START_TEST(law_9_second_consumer_is_served_while_the_first_is_stopped)
{
	static const enum test_point points[] = { TEST_POINT_CONSUME_BEFORE_CLEAR,
		                                  TEST_POINT_CONSUME_AFTER_CLEAR };

	for (unsigned i = 0; i < COUNT_OF(points); i++) {
		struct rig rig = rig_manual(8);
		struct puppet drainer = puppet_of(&rig, DRAIN);

		(void)arm_at(&rig, 100, 'X');
		(void)arm_at(&rig, 200, 'Y');
		(void)arm_at(&rig, 300, 'Z');
		advance(&rig, 100);
		puppet_start(&drainer, points[i]);
		advance(&rig, 200);
		expect(fd_readable(rig.queue));
		expect_event(&rig, 'Y');
		advance(&rig, 300);
		expect(fd_readable(rig.queue));
		puppet_finish(&drainer);
		expect_events(&drainer, 2, "XZ");
		expect_nothing(&rig);
		rig_close(&rig);
	}
}
END_TEST

/* One that stops at its maximum has to tell whether there is more. */
START_TEST(law_9_partial_drain_tells_of_what_came_meanwhile)
{
	static const enum test_point points[] = { TEST_POINT_CONSUME_BEFORE_CLEAR,
		                                  TEST_POINT_CONSUME_AFTER_CLEAR };

	for (unsigned i = 0; i < COUNT_OF(points); i++) {
		struct rig rig = rig_manual(8);
		struct puppet drainer = puppet_of(&rig, i == 0 ? DRAIN : DISPATCH);

		drainer.deed.max = 1;
		(void)arm_at(&rig, 100, 'X');
		(void)arm_at(&rig, 200, 'Y');
		advance(&rig, 100);
		puppet_start(&drainer, points[i]);
		advance(&rig, 200);
		puppet_finish(&drainer);
		expect_eq(drainer.deed.result, 1);
		expect(fd_readable(rig.queue));
		expect_event(&rig, 'Y');
		expect_nothing(&rig);
		rig_close(&rig);
	}
}
END_TEST

/* ---- detaching an io_uring, while somebody is about to post to it ---- */

#ifndef TIMERHUB_WITHOUT_IO_URING
static unsigned completions_take(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	unsigned count = 0;

	for (; io_uring_peek_cqe(ring, &cqe) == 0; count++)
		io_uring_cqe_seen(ring, cqe);
	return count;
}

START_TEST(detach_waits_for_who_is_about_to_post)
{
	struct rig rig = rig_manual(8);
	struct puppet drainer = puppet_of(&rig, DRAIN);
	struct puppet detacher = puppet_of(&rig, DETACH);
	struct io_uring ring;
	int refused = io_uring_queue_init(8, &ring, 0);

	if (refused < 0) {
		printf("skipped: io_uring: %s\n", strerror(-refused));
		return;
	}
	expect_eq(timerhub_queue_attach_uring(rig.queue, ring.ring_fd, 7), 0);
	(void)arm_at(&rig, 100, 'X');
	(void)arm_at(&rig, 100, 'Y');
	advance(&rig, 100);
	drainer.deed.max = 1;
	puppet_start(&drainer, TEST_POINT_ANNOUNCE_BEFORE_POST);
	puppet_start(&detacher, TEST_POINT_DETACH_BEFORE_NAP);
	expect_eq(completions_take(&ring), 1);
	atomic_store(&detacher.released, true);
	sleep_ns(20 * MS);
	expect(!atomic_load(&detacher.over));
	puppet_finish(&drainer);
	puppet_finish(&detacher);
	expect_eq(detacher.deed.result, 0);
	expect_eq(completions_take(&ring), 1);
	rig_close(&rig);
	io_uring_queue_exit(&ring);
}
END_TEST
#endif

/* ---- cancel_sync: between delivering and saying that the callback runs ---- */

static atomic_uint called;

static void count_call(const struct timerhub_event *event)
{
	atomic_fetch_add(&called, (unsigned)event->count);
}

/* Not in the callback yet, and no longer to be stopped: it has to be waited for all the same. */
START_TEST(cancel_sync_waits_for_a_callback_about_to_begin)
{
	for (unsigned interval_ns = 0; interval_ns <= 100; interval_ns += 100) {
		struct rig rig = rig_manual(8);
		struct puppet dispatcher = puppet_of(&rig, DISPATCH);
		struct puppet canceller = puppet_of(&rig, CANCEL_SYNC);
		struct timerhub_spec spec = { .size = sizeof(spec),
			                      .expires_ns = 100,
			                      .interval_ns = interval_ns,
			                      .fn = count_call };

		atomic_store(&called, 0);
		expect_eq(timerhub_arm(rig.queue, &spec, &canceller.deed.timer), 0);
		advance(&rig, 100);
		puppet_start(&dispatcher, TEST_POINT_DISPATCH_BEFORE_BEGIN);
		puppet_start(&canceller, TEST_POINT_CALLBACK_BEFORE_NAP);
		expect_eq(atomic_load(&called), 0);
		atomic_store(&canceller.released, true);
		sleep_ns(20 * MS);
		expect(!atomic_load(&canceller.over));
		puppet_finish(&dispatcher);
		puppet_finish(&canceller);
		expect_eq(atomic_load(&called), 1);
		expect_eq(canceller.deed.result, interval_ns > 0 ? 0 : -ENOENT);
		rig_close(&rig);
	}
}
END_TEST

/* ---- wait: between looking and blocking ---- */

START_TEST(waiter_about_to_block_does_not_miss_an_expiry)
{
	struct rig rig = rig_manual(8);
	struct puppet waiter = puppet_of(&rig, WAIT);
	uint64_t before_ns = monotonic_ns();

	(void)arm_at(&rig, 100, 'X');
	puppet_start(&waiter, TEST_POINT_WAIT_BEFORE_SLEEP);
	advance(&rig, 100);
	puppet_finish(&waiter);
	expect_events(&waiter, 1, "X");
	expect_lt(monotonic_ns(), before_ns + ARRIVES);
	expect_nothing(&rig);
	rig_close(&rig);
}
END_TEST

START_TEST(waiter_about_to_block_does_not_miss_an_interrupt)
{
	struct rig rig = rig_manual(8);
	struct puppet waiter = puppet_of(&rig, WAIT);
	uint64_t before_ns = monotonic_ns();

	puppet_start(&waiter, TEST_POINT_WAIT_BEFORE_SLEEP);
	timerhub_interrupt(rig.queue);
	puppet_finish(&waiter);
	expect_eq(waiter.deed.result, -ECANCELED);
	expect_lt(monotonic_ns(), before_ns + ARRIVES);
	rig_close(&rig);
}
END_TEST

/*
 * A waiter that is to leave may be the one that an expiry has woken, of several: another gets it,
 * even if the thread that interrupts is stopped before it has woken anybody.
 */
START_TEST(interrupted_waiter_passes_the_wake_on)
{
	struct rig rig = rig_manual(8);
	struct puppet former = puppet_of(&rig, WAIT);
	struct puppet interrupter = puppet_of(&rig, INTERRUPT);
	struct puppet latter = puppet_of(&rig, WAIT);
	uint64_t before_ns = monotonic_ns();

	(void)arm_at(&rig, 100, 'X');
	puppet_start(&former, TEST_POINT_WAIT_BEFORE_SLEEP);
	atomic_store(&former.released, true);
	sleep_ns(5 * MS); /* it blocks by now, most likely */
	puppet_start(&interrupter, TEST_POINT_INTERRUPT_HALFWAY);
	puppet_start(&latter, TEST_POINT_WAIT_BEFORE_SLEEP);
	atomic_store(&latter.released, true);
	sleep_ns(5 * MS);
	advance(&rig, 100);
	puppet_finish(&latter);
	expect_events(&latter, 1, "X");
	expect_lt(monotonic_ns(), before_ns + ARRIVES); /* woken, and not by its timeout */
	puppet_finish(&interrupter);
	puppet_finish(&former);
	expect_eq(former.deed.result, -ECANCELED);
	rig_close(&rig);
}
END_TEST

static void *close_queue(void *arg)
{
	timerhub_queue_close(arg);
	return NULL;
}

START_TEST(waiter_about_to_block_does_not_miss_the_closing_which_waits_for_it)
{
	struct rig rig = rig_manual(8);
	struct puppet waiter = puppet_of(&rig, WAIT);
	uint64_t before_ns = monotonic_ns();
	pthread_t closer;

	puppet_start(&waiter, TEST_POINT_WAIT_BEFORE_SLEEP);
	thread_start(&closer, close_queue, rig.queue);
	sleep_ns(5 * MS);
	puppet_finish(&waiter);
	thread_join(closer);
	expect_eq(waiter.deed.result, -ESHUTDOWN);
	expect_lt(monotonic_ns(), before_ns + ARRIVES);
	rig_close(&rig);
}
END_TEST

/* Two waiters, one stopped; what is published for both reaches the other. */
START_TEST(stopped_waiter_does_not_take_the_wake_of_another)
{
	struct rig rig = rig_manual(8);
	struct puppet stopped = puppet_of(&rig, WAIT);
	struct puppet other = puppet_of(&rig, WAIT);
	uint64_t before_ns = monotonic_ns();

	other.deed.max = 1;
	(void)arm_at(&rig, 100, 'X');
	(void)arm_at(&rig, 200, 'Y');
	puppet_start(&stopped, TEST_POINT_WAIT_BEFORE_SLEEP);
	puppet_start(&other, TEST_POINT_WAIT_BEFORE_SLEEP);
	atomic_store(&other.released, true);
	sleep_ns(5 * MS); /* it blocks by now, most likely */
	advance(&rig, 100);
	puppet_finish(&other);
	expect_events(&other, 1, "X");
	expect_lt(monotonic_ns(), before_ns + ARRIVES); /* woken, and not by its timeout */
	advance(&rig, 200);
	puppet_finish(&stopped);
	expect_events(&stopped, 1, "Y");
	expect_nothing(&rig);
	rig_close(&rig);
}
END_TEST

/* ---- laws 2, 3, 4: a delivery against cancel and re-arm ---- */

START_TEST(law_3_cancel_wins_over_a_stopped_delivery)
{
	struct rig rig = rig_manual(1);
	struct puppet drainer = puppet_of(&rig, DRAIN);
	timerhub_timer timer = arm_at(&rig, 100, 'X');

	advance(&rig, 100);
	puppet_start(&drainer, TEST_POINT_CONSUME_BEFORE_CAS);
	expect_eq(timerhub_cancel(rig.hub, timer), 0);
	expect_eq(timerhub_cancel(rig.hub, timer), -ENOENT);
	/*
	 * The slot lives again, pending like before, while the delivery has the old life in hand.
	 */
	(void)arm_at(&rig, 100, 'Y');
	advance(&rig, 100);
	puppet_finish(&drainer);
	expect_events(&drainer, 1, "Y");
	expect_nothing(&rig);
	expect_eq(stats_of(rig.hub).delivered, 1);
	expect_eq(stats_of(rig.hub).cancelled, 1);
	expect_eq(stats_of(rig.hub).live, 0);
	rig_close(&rig);
}
END_TEST

START_TEST(law_4_rearm_wins_over_a_stopped_delivery)
{
	struct rig rig = rig_manual(1);
	struct puppet drainer = puppet_of(&rig, DRAIN);
	timerhub_timer timer = arm_at(&rig, 100, 'X');

	advance(&rig, 100);
	puppet_start(&drainer, TEST_POINT_CONSUME_BEFORE_CAS);
	expect_eq(timerhub_rearm(rig.hub, timer, 640, TIMERHUB_ABSOLUTE), 0);
	puppet_finish(&drainer);
	expect_events(&drainer, 0, "");
	expect_at(&rig, 'X', 640);
	expect_nothing(&rig);
	rig_close(&rig);
}
END_TEST

/* Re-armed and expired again, the timer is delivered once, for its new deadline. */
START_TEST(law_2_expiry_renewed_under_a_stopped_delivery_comes_once)
{
	struct rig rig = rig_manual(1);
	struct puppet drainer = puppet_of(&rig, DRAIN);
	timerhub_timer timer = arm_at(&rig, 100, 'X');

	advance(&rig, 100);
	puppet_start(&drainer, TEST_POINT_CONSUME_BEFORE_CAS);
	expect_eq(timerhub_rearm(rig.hub, timer, 640, TIMERHUB_ABSOLUTE), 0);
	advance(&rig, 640);
	puppet_finish(&drainer);
	expect_events(&drainer, 1, "X");
	expect_eq(drainer.deed.events[0].expires_ns, 640);
	expect_nothing(&rig);
	rig_close(&rig);
}
END_TEST

/* Law 3: however often the slot is used again meanwhile, with the same deadline each time. */
START_TEST(law_3_stopped_delivery_does_not_hit_a_later_life_of_the_slot)
{
	for (unsigned lives = 1; lives <= 300; lives++) {
		struct rig rig = rig_manual(1);
		struct puppet drainer = puppet_of(&rig, DRAIN);
		timerhub_timer timer = arm_at(&rig, 100, 0);

		expect_context("lives", lives, 0);
		advance(&rig, 100);
		puppet_start(&drainer, TEST_POINT_CONSUME_BEFORE_CAS);
		for (unsigned life = 1; life <= lives; life++) {
			expect_eq(timerhub_cancel(rig.hub, timer), 0);
			timer = arm_at(&rig, 100, life);
			advance(&rig, 100);
		}
		puppet_finish(&drainer);
		/*
		 * The last life's own expiry, and nothing of a cancelled one; from this drain or,
		 * where that hit the last life and undid it, from the one after the next pass.
		 */
		if (drainer.deed.result == 0) {
			advance(&rig, 100);
			drainer.deed.events[0] = expect_event(&rig, lives);
		}
		expect_eq(drainer.deed.events[0].data, lives);
		expect_eq(drainer.deed.events[0].timer, timer);
		expect_le(drainer.deed.result, 1);
		advance(&rig, 100);
		expect_nothing(&rig);
		expect_eq(stats_of(rig.hub).delivered, 1);
		expect_eq(stats_of(rig.hub).live, 0);
		rig_close(&rig);
		lives += lives > 40 ? 51 : 0;
	}
}
END_TEST

/* ---- periodic timers ---- */

/* Law 3, as above: the word comes back between the two steps of a periodic delivery. */
START_TEST(law_3_stopped_periodic_delivery_does_not_return_a_cancelled_timer)
{
	for (unsigned lives = 1; lives <= 40; lives++) {
		struct rig rig = rig_manual(1);
		struct puppet drainer = puppet_of(&rig, DRAIN);
		timerhub_timer timer = arm_periodic(&rig, 100, 1000, 0);

		expect_context("lives", lives, 0);
		advance(&rig, 100);
		puppet_start(&drainer, TEST_POINT_CONSUME_BEFORE_REARM);
		for (unsigned life = 1; life <= lives; life++) {
			expect_eq(timerhub_cancel(rig.hub, timer), 0);
			timer = arm_periodic(&rig, 100, 1000, life);
			advance(&rig, 100);
		}
		puppet_finish(&drainer);
		/* The last life's expiry, from this drain or from the one after the next pass. */
		if (drainer.deed.result == 0) {
			advance(&rig, 100);
			drainer.deed.events[0] = expect_event(&rig, lives);
		}
		expect_eq(drainer.deed.events[0].data, lives);
		expect_eq(drainer.deed.events[0].timer, timer);
		expect_eq(drainer.deed.events[0].expires_ns, 100);
		expect_le(drainer.deed.result, 1);
		expect_nothing(&rig);
		expect_eq(stats_of(rig.hub).delivered, 1);
		advance(&rig, 1100);
		expect_eq(expect_event(&rig, lives).expires_ns, 1100);
		rig_close(&rig);
	}
}
END_TEST

START_TEST(periodic_delivery_survives_being_parked_under_its_hands)
{
	struct rig rig = rig_manual(1);
	struct puppet drainer = puppet_of(&rig, DRAIN);
	struct timerhub_event event;

	(void)arm_periodic(&rig, 100, 1000, 'P');
	advance(&rig, 100);
	puppet_start(&drainer, TEST_POINT_CONSUME_BEFORE_CAS);
	advance(&rig, 5500); /* falls due again, and is parked */
	puppet_finish(&drainer);
	expect_events(&drainer, 1, "P");
	expect_eq(drainer.deed.events[0].expires_ns, 100);
	expect_eq(drainer.deed.events[0].count, 6); /* 100, 1100 … 5100 */
	advance(&rig, 6099);
	expect_nothing(&rig);
	advance(&rig, 6100);
	event = expect_event(&rig, 'P');
	expect_eq(event.expires_ns, 6100);
	expect_eq(event.count, 1);
	rig_close(&rig);
}
END_TEST

START_TEST(periodic_cancelled_under_a_stopped_delivery_is_gone)
{
	struct rig rig = rig_manual(1);
	struct puppet drainer = puppet_of(&rig, DRAIN);
	timerhub_timer timer = arm_periodic(&rig, 100, 1000, 'P');

	advance(&rig, 100);
	puppet_start(&drainer, TEST_POINT_CONSUME_BEFORE_CAS);
	expect_eq(timerhub_cancel(rig.hub, timer), 0);
	(void)arm_at(&rig, 2000, 'X');
	puppet_finish(&drainer);
	expect_events(&drainer, 0, "");
	advance(&rig, 1999);
	expect_nothing(&rig);
	advance(&rig, 2000);
	expect_event(&rig, 'X');
	advance(&rig, 20000);
	expect_nothing(&rig);
	rig_close(&rig);
}
END_TEST

/* Re-armed to whatever instant around its next period, it does not come before that. */
static void check_rearm_under_delivery(uint64_t first_ns, uint64_t at_ns)
{
	struct rig rig = rig_manual(1);
	struct puppet drainer = puppet_of(&rig, DRAIN);
	timerhub_timer timer = arm_periodic(&rig, first_ns, 1000, 'P');
	struct timerhub_event event;

	expect_context("first, re-armed to", first_ns, at_ns);
	advance(&rig, first_ns);
	puppet_start(&drainer, TEST_POINT_CONSUME_BEFORE_CAS);
	expect_eq(timerhub_rearm(rig.hub, timer, at_ns, TIMERHUB_ABSOLUTE), 0);
	puppet_finish(&drainer);
	expect_events(&drainer, 0, "");
	advance(&rig, at_ns - 1);
	expect_nothing(&rig);
	advance(&rig, at_ns + 63);
	event = expect_event(&rig, 'P');
	expect_le(at_ns, event.expires_ns);
	expect_eq(event.count, 1);
	/* The phase is the new deadline's from now on. */
	advance(&rig, event.expires_ns + 999);
	expect_nothing(&rig);
	advance(&rig, event.expires_ns + 1000);
	expect_eq(expect_event(&rig, 'P').expires_ns, event.expires_ns + 1000);
	rig_close(&rig);
}

START_TEST(law_1_periodic_rearmed_under_a_stopped_delivery_is_not_early)
{
	for (uint64_t first_ns = 100; first_ns <= 128; first_ns += 28)
		for (uint64_t offset = 0; offset < 200; offset += 7)
			check_rearm_under_delivery(first_ns, first_ns + 900 + offset);
}
END_TEST

/* ---- the nanoseconds of a deadline, which are kept beside the word ---- */

/* The deadline moves within its 64 ns: the owner, who has read the old nanoseconds, must notice. */
START_TEST(law_4_rearm_to_the_same_unit_wins_over_a_stopped_owner)
{
	struct rig rig = rig_manual(1);
	struct puppet owner = puppet_of(&rig, ADVANCE);
	timerhub_timer timer = arm_at(&rig, 100, 'X');

	owner.deed.at_ns = 100;
	puppet_start(&owner, TEST_POINT_OWNER_BEFORE_CAS);
	expect_eq(timerhub_rearm(rig.hub, timer, 128, TIMERHUB_ABSOLUTE), 0);
	puppet_finish(&owner);
	expect_nothing(&rig);
	expect_at(&rig, 'X', 128);
	rig_close(&rig);
}
END_TEST

/* The same, when another re-arm, which goes no further, has made the nanoseconds forgotten. */
START_TEST(law_4_rearm_to_the_same_unit_wins_beside_another_rearm)
{
	struct rig rig = rig_manual(1);
	struct puppet owner = puppet_of(&rig, ADVANCE);
	struct puppet other = puppet_of(&rig, REARM);
	timerhub_timer timer = arm_at(&rig, 100, 'X');

	owner.deed.at_ns = 100;
	puppet_start(&owner, TEST_POINT_OWNER_BEFORE_CAS);
	other.deed.timer = timer;
	/* To where the old nanoseconds would be taken for the new deadline's. */
	other.deed.at_ns = 128 + ALIKE_NS;
	puppet_start(&other, TEST_POINT_REARM_BEFORE_CAS);
	expect_eq(timerhub_rearm(rig.hub, timer, 128, TIMERHUB_ABSOLUTE), 0);
	puppet_finish(&owner);
	expect_nothing(&rig);
	puppet_finish(&other);
	expect_eq(other.deed.result, 0);
	expect_at(&rig, 'X', 128 + ALIKE_NS);
	rig_close(&rig);
}
END_TEST

/* Nanoseconds that were left, for they said nothing of the deadline, must not come to say it. */
START_TEST(law_1_nanoseconds_left_by_a_rearm_are_not_taken_for_a_later_one)
{
	struct rig rig = rig_manual(1);
	timerhub_timer timer = arm_at(&rig, 100, 'X');

	expect_eq(timerhub_rearm(rig.hub, timer, 640, TIMERHUB_ABSOLUTE), 0);
	expect_eq(timerhub_rearm(rig.hub, timer, 128 + ALIKE_NS, TIMERHUB_ABSOLUTE), 0);
	expect_at(&rig, 'X', 128 + ALIKE_NS);
	rig_close(&rig);
}
END_TEST

/*
 * A periodic timer has expired, was re-armed with nobody having looked, and has expired anew: its
 * handle is there for two consumers.
 */
static void expire_twice_by(struct rig *rig, uint64_t interval_ns, uint64_t at_ns)
{
	timerhub_timer timer = arm_periodic(rig, 64, interval_ns, 'P');

	advance(rig, 64);
	expect_eq(timerhub_rearm(rig->hub, timer, at_ns, TIMERHUB_ABSOLUTE), 0);
	advance(rig, at_ns);
}

/*
 * The next period looks like this one, but for its nanoseconds: those are not told of this one, to
 * a consumer who has held the handle since before a re-arm, while a delivery has written them.
 */
START_TEST(law_1_next_period_alike_does_not_make_this_one_early)
{
	struct rig rig = rig_manual(1);
	struct puppet drainer = puppet_of(&rig, DRAIN);
	struct timerhub_event event;

	expire_twice_by(&rig, ALIKE_NS - 1, 6400);
	drainer.deed.max = 1;
	puppet_start(&drainer, TEST_POINT_CONSUME_BEFORE_REARM);
	event = expect_event(&rig, 'P');
	expect_eq(event.expires_ns, 6400);
	expect_eq(event.count, 1);
	puppet_finish(&drainer);
	expect_eq(drainer.deed.result, 0);
	expect_at(&rig, 'P', 6399 + ALIKE_NS);
	rig_close(&rig);
}
END_TEST

/* And they are told of the next one, should the thread that wrote them be stopped for ever. */
START_TEST(law_7_period_alike_keeps_its_phase_under_a_stopped_delivery)
{
	struct rig rig = rig_manual(1);
	struct puppet drainer = puppet_of(&rig, DRAIN);
	uint64_t next_ns = 64;

	(void)arm_periodic(&rig, next_ns, ALIKE_NS - 1, 'P');
	advance(&rig, next_ns);
	puppet_start(&drainer, TEST_POINT_CONSUME_AHEAD);
	for (unsigned i = 0; i < 70; i++) {
		next_ns += ALIKE_NS - 1;
		expect_at(&rig, 'P', next_ns);
	}
	puppet_finish(&drainer);
	expect_events(&drainer, 1, "P");
	advance(&rig, next_ns + ALIKE_NS - 1);
	expect_eq(expect_event(&rig, 'P').expires_ns, next_ns + ALIKE_NS - 1);
	rig_close(&rig);
}
END_TEST

/*
 * Two deliver one expiry, of which one has held the handle since before a re-arm. The one that wins
 * finds no nanoseconds, nor has its next deadline any. Those that the other was about to write, of
 * a period less, are not taken for that deadline's.
 */
START_TEST(law_1_nanoseconds_of_a_delivery_that_lost_are_not_taken_for_another_period)
{
	struct rig rig = rig_manual(1);
	struct puppet drainer = puppet_of(&rig, DRAIN);
	uint64_t interval_ns = ALIKE_NS + TIMER_UNIT_NS / 2;

	expire_twice_by(&rig, interval_ns, 6400);
	drainer.deed.max = 1;
	puppet_start(&drainer, TEST_POINT_CONSUME_TOUCHED);
	advance(&rig, 6400 + interval_ns);
	expect_eq(expect_event(&rig, 'P').count, 2);
	/* It comes there only if it could write them. */
	puppet_go_on_if_it_comes(&drainer, TEST_POINT_CONSUME_BEFORE_REARM);
	expect_at(&rig, 'P', 6400 + 2 * interval_ns);
	puppet_finish(&drainer);
	expect_eq(drainer.deed.result, 0);
	rig_close(&rig);
}
END_TEST

/* Delivered while a re-arm has begun, it stands for the one period that has passed. */
START_TEST(periodic_delivered_under_a_stopped_rearm_counts_right)
{
	struct rig rig = rig_manual(1);
	struct puppet rearmer = puppet_of(&rig, REARM);

	rearmer.deed.timer = arm_periodic(&rig, 100, 1000, 'P');
	rearmer.deed.at_ns = 6400;
	advance(&rig, 100);
	puppet_start(&rearmer, TEST_POINT_REARM_BEFORE_CAS);
	expect_eq(expect_event(&rig, 'P').count, 1);
	puppet_finish(&rearmer);
	expect_eq(rearmer.deed.result, 0);
	expect_at(&rig, 'P', 6400);
	rig_close(&rig);
}
END_TEST

/*
 * The owner takes the slot out of the inbox, where a thread stopped in its former life has put it
 * late, while it is being delivered: that must not cost its phase some nanoseconds.
 */
static void check_look_under_delivery(enum test_point point)
{
	struct rig rig = rig_manual(1);
	struct puppet drainer = puppet_of(&rig, DRAIN);
	struct puppet rearmer = puppet_of(&rig, REARM);
	timerhub_timer former = arm_at(&rig, 1000000, 'F');

	expect_context("point", point, 0);
	advance(&rig, 10);
	rearmer.deed.timer = former;
	rearmer.deed.at_ns = 6400;
	puppet_start(&rearmer, TEST_POINT_SUBMIT_BEFORE_PUSH);
	expect_eq(timerhub_cancel(rig.hub, former), 0);
	(void)arm_periodic(&rig, 100, 1000, 'P');
	advance(&rig, 100);
	puppet_start(&drainer, point);
	puppet_finish(&rearmer);
	advance(&rig, 200);
	puppet_finish(&drainer);
	expect_events(&drainer, 1, "P");
	expect_eq(drainer.deed.events[0].expires_ns, 100);
	expect_at(&rig, 'P', 1100);
	rig_close(&rig);
}

START_TEST(periods_keep_their_phase_when_looked_at_under_a_stopped_delivery)
{
	check_look_under_delivery(TEST_POINT_CONSUME_BEFORE_CAS);
	check_look_under_delivery(TEST_POINT_CONSUME_TOUCHED);
	check_look_under_delivery(TEST_POINT_CONSUME_BEFORE_REARM);
}
END_TEST

/*
 * Re-armed to the very 64 ns in which the next period lies, by a thread stopped before the delivery
 * or by another one after it: the nanoseconds of that period are not taken for the new deadline's.
 */
static void check_rearm_to_the_next_period(uint64_t first_ns, bool stopped)
{
	struct rig rig = rig_manual(1);
	struct puppet drainer = puppet_of(&rig, DRAIN);
	struct puppet rearmer = puppet_of(&rig, REARM);
	timerhub_timer timer = arm_periodic(&rig, first_ns, 1000, 'P');
	uint64_t next_ns = first_ns + 1000, at_ns = (next_ns | 63) + 1;

	expect_context("first, stopped", first_ns, stopped);
	rearmer.deed.timer = timer;
	rearmer.deed.at_ns = at_ns;
	advance(&rig, first_ns);
	if (stopped)
		puppet_start(&rearmer, TEST_POINT_REARM_BEFORE_CAS);
	puppet_start(&drainer, TEST_POINT_CONSUME_BEFORE_REARM);
	if (stopped)
		puppet_finish(&rearmer);
	else
		expect_eq(timerhub_rearm(rig.hub, timer, at_ns, TIMERHUB_ABSOLUTE), 0);
	advance(&rig, next_ns);
	expect_nothing(&rig);
	puppet_finish(&drainer);
	advance(&rig, at_ns - 1);
	expect_nothing(&rig);
	advance(&rig, at_ns);
	expect_eq(expect_event(&rig, 'P').expires_ns, at_ns);
	rig_close(&rig);
}

/* The same where the re-arm begins while the delivery is about to write the nanoseconds. */
static void check_rearm_beside_a_delivery(uint64_t first_ns)
{
	struct rig rig = rig_manual(1);
	struct puppet drainer = puppet_of(&rig, DRAIN);
	struct puppet rearmer = puppet_of(&rig, REARM);
	uint64_t next_ns = first_ns + 1000, at_ns = (next_ns | 63) + 1;

	expect_context("first", first_ns, 0);
	rearmer.deed.timer = arm_periodic(&rig, first_ns, 1000, 'P');
	rearmer.deed.at_ns = at_ns;
	advance(&rig, first_ns);
	puppet_start(&drainer, TEST_POINT_CONSUME_TOUCHED);
	puppet_start(&rearmer, TEST_POINT_REARM_BEFORE_CAS);
	puppet_go_on(&drainer, TEST_POINT_CONSUME_BEFORE_REARM);
	puppet_finish(&rearmer);
	advance(&rig, next_ns);
	expect_nothing(&rig);
	puppet_finish(&drainer);
	advance(&rig, at_ns);
	expect_eq(expect_event(&rig, 'P').expires_ns, at_ns);
	rig_close(&rig);
}

START_TEST(law_1_periodic_rearmed_to_its_next_period_is_not_early)
{
	for (uint64_t first_ns = 100; first_ns <= 128; first_ns += 28) {
		check_rearm_to_the_next_period(first_ns, false);
		check_rearm_to_the_next_period(first_ns, true);
		check_rearm_beside_a_delivery(first_ns);
	}
}
END_TEST

/* The next period, 2^20 ns later and ten more, looks like this one but for its nanoseconds. */
START_TEST(law_1_next_period_does_not_take_the_nanoseconds_of_this_one)
{
	struct rig rig = rig_manual(1);
	struct puppet drainer = puppet_of(&rig, DRAIN);
	uint64_t next_ns = 100 + (1 << 20) + 10;

	(void)arm_periodic(&rig, 100, (1 << 20) + 10, 'P');
	advance(&rig, 100);
	puppet_start(&drainer, TEST_POINT_CONSUME_BEFORE_REARM);
	advance(&rig, next_ns - 1);
	expect_nothing(&rig);
	puppet_finish(&drainer);
	expect_events(&drainer, 1, "P");
	advance(&rig, next_ns);
	expect_eq(expect_event(&rig, 'P').expires_ns, next_ns);
	rig_close(&rig);
}
END_TEST

/* ---- the owner between word and outbox ---- */

/* The timer is pending, and in no queue yet. Cancelled, its slot lives again at once. */
START_TEST(law_3_cancel_before_the_owner_publishes)
{
	for (uint64_t interval_ns = 0; interval_ns <= 1000; interval_ns += 1000) {
		struct rig rig = rig_manual(1);
		struct puppet owner = puppet_of(&rig, ADVANCE);
		timerhub_timer timer = arm_periodic(&rig, 100, interval_ns, 'X');

		expect_context("interval", interval_ns, 0);
		owner.deed.at_ns = 100;
		puppet_start(&owner, TEST_POINT_OWNER_BEFORE_PUBLISH);
		expect_eq(timerhub_cancel(rig.hub, timer), 0);
		(void)arm_at(&rig, 500, 'Y');
		puppet_finish(&owner);
		expect_nothing(&rig);
		advance(&rig, 499);
		expect_nothing(&rig);
		advance(&rig, 500);
		expect_event(&rig, 'Y');
		advance(&rig, 10000);
		expect_nothing(&rig);
		rig_close(&rig);
	}
}
END_TEST

START_TEST(law_4_rearm_before_the_owner_publishes)
{
	for (uint64_t interval_ns = 0; interval_ns <= 1000; interval_ns += 1000) {
		struct rig rig = rig_manual(1);
		struct puppet owner = puppet_of(&rig, ADVANCE);
		timerhub_timer timer = arm_periodic(&rig, 100, interval_ns, 'X');

		expect_context("interval", interval_ns, 0);
		owner.deed.at_ns = 100;
		puppet_start(&owner, TEST_POINT_OWNER_BEFORE_PUBLISH);
		expect_eq(timerhub_rearm(rig.hub, timer, 640, TIMERHUB_ABSOLUTE), 0);
		puppet_finish(&owner);
		expect_nothing(&rig);
		expect_at(&rig, 'X', 640);
		expect_nothing(&rig);
		advance(&rig, 1640);
		if (interval_ns > 0)
			expect_eq(expect_event(&rig, 'X').expires_ns, 1640);
		expect_nothing(&rig);
		rig_close(&rig);
	}
}
END_TEST

/* Nothing is promised of the instant between, but a second thread may not advance. */
START_TEST(second_thread_is_not_let_into_advance)
{
	struct rig rig = rig_manual(1);
	struct puppet owner = puppet_of(&rig, ADVANCE);

	(void)arm_at(&rig, 100, 'X');
	owner.deed.at_ns = 100;
	puppet_start(&owner, TEST_POINT_OWNER_BEFORE_INBOX);
	expect_eq(timerhub_advance(rig.hub, 200, NULL), -EBUSY);
	puppet_finish(&owner);
	expect_eq(timerhub_now(rig.hub), 100);
	expect_event(&rig, 'X');
	rig_close(&rig);
}
END_TEST

static void add_consumer_tests(void)
{
	tests_add(law_9_expiry_before_the_clear_is_found, 60);
	tests_add(law_9_expiry_after_the_clear_is_found_and_the_fd_is_cleared_again, 60);
	tests_add(law_9_second_consumer_is_served_while_the_first_is_stopped, 60);
	tests_add(law_9_partial_drain_tells_of_what_came_meanwhile, 60);
#ifndef TIMERHUB_WITHOUT_IO_URING
	tests_add(detach_waits_for_who_is_about_to_post, 60);
#endif
	tests_add(cancel_sync_waits_for_a_callback_about_to_begin, 60);
	tests_add(waiter_about_to_block_does_not_miss_an_expiry, 60);
	tests_add(waiter_about_to_block_does_not_miss_an_interrupt, 60);
	tests_add(waiter_about_to_block_does_not_miss_the_closing_which_waits_for_it, 60);
	tests_add(interrupted_waiter_passes_the_wake_on, 60);
	tests_add(stopped_waiter_does_not_take_the_wake_of_another, 60);
}

int main(int argc, char **argv)
{
	puppets_begin("traps of delivery", argc, argv);
	add_consumer_tests();
	tests_add(law_3_cancel_wins_over_a_stopped_delivery, 60);
	tests_add(law_4_rearm_wins_over_a_stopped_delivery, 60);
	tests_add(law_2_expiry_renewed_under_a_stopped_delivery_comes_once, 60);
	tests_add(law_3_stopped_delivery_does_not_hit_a_later_life_of_the_slot, 60);
	tests_add(law_3_stopped_periodic_delivery_does_not_return_a_cancelled_timer, 60);
	tests_add(periodic_delivery_survives_being_parked_under_its_hands, 60);
	tests_add(periodic_cancelled_under_a_stopped_delivery_is_gone, 60);
	tests_add(law_1_periodic_rearmed_under_a_stopped_delivery_is_not_early, 60);
	tests_add(law_4_rearm_to_the_same_unit_wins_over_a_stopped_owner, 60);
	tests_add(law_4_rearm_to_the_same_unit_wins_beside_another_rearm, 60);
	tests_add(law_1_nanoseconds_left_by_a_rearm_are_not_taken_for_a_later_one, 60);
	tests_add(law_1_next_period_alike_does_not_make_this_one_early, 60);
	tests_add(law_7_period_alike_keeps_its_phase_under_a_stopped_delivery, 60);
	tests_add(law_1_nanoseconds_of_a_delivery_that_lost_are_not_taken_for_another_period, 60);
	tests_add(periodic_delivered_under_a_stopped_rearm_counts_right, 60);
	tests_add(periods_keep_their_phase_when_looked_at_under_a_stopped_delivery, 60);
	tests_add(law_1_periodic_rearmed_to_its_next_period_is_not_early, 60);
	tests_add(law_1_next_period_does_not_take_the_nanoseconds_of_this_one, 60);
	tests_add(law_3_cancel_before_the_owner_publishes, 60);
	tests_add(law_4_rearm_before_the_owner_publishes, 60);
	tests_add(second_thread_is_not_let_into_advance, 60);
	return tests_run();
}
