/* SPDX-License-Identifier: MIT */
/*
 * A consumer or the owner is stopped between two steps of a delivery, where the simulation may not
 * find the fault, as if the kernel had preempted it; it stays so until the test releases it. On a
 * manual hub, the thread that advances the hub is the owner. If the library is built with
 * TIMERHUB_TEST_POINTS, it calls a hook at the points listed in lib/base/test_point.h.
 */
#include "rig.h"

#include <stdatomic.h>

#include "base/test_point.h"
#include "hub/hub.h"

/* ---- threads that stop ---- */

enum deed_kind { ARM, REARM, DRAIN, WAIT, ADVANCE, STOP };

/* The library call that a stopped thread makes. */
struct deed {
	enum deed_kind what;
	struct timerhub_queue *queue;
	struct timerhub *hub;
	timerhub_timer timer; /* timer to re-arm; for ARM, the armed timer */
	uint64_t at_ns;       /* absolute deadline, new time (ADVANCE) or timeout (WAIT) */
	unsigned max;         /* largest number of events to take; used by DRAIN and WAIT */
	int result;
	struct timerhub_event events[8];
};

struct stopped_thread {
	struct deed deed; /* the test reads deed.result after stopped_thread_finish() */
	pthread_t thread;
	atomic_int stop_at; /* test point (enum test_point) at which the thread stops, or NOWHERE */
	atomic_bool stopped;  /* true while the thread is stopped */
	atomic_bool released; /* true if the thread may continue */
	atomic_bool over;     /* true if the library call has returned */
};

#define NOWHERE (-1)
#define POLL_NS (20 * US)

/* The stopped_thread that the calling thread runs, or NULL if the tests do not stop this thread. */
static _Thread_local struct stopped_thread *self;

static void hook(enum test_point point)
{
	if (!self || atomic_load(&self->stop_at) != (int)point)
		return;
	atomic_store(&self->stop_at, NOWHERE);
	atomic_store(&self->stopped, true);
	while (!atomic_load(&self->released))
		sleep_ns(POLL_NS);
	atomic_store(&self->released, false);
}

static __attribute__((constructor)) void hook_install(void)
{
	test_point_hook = hook;
}

static void deed_do(struct deed *deed)
{
	struct timerhub_spec spec =
		SPEC(.flags = TIMERHUB_ABSOLUTE, .expires_ns = deed->at_ns, .data = 'A');

	switch (deed->what) {
	case ARM:
		deed->result = timerhub_arm(deed->queue, &spec, &deed->timer);
		break;
	case REARM:
		deed->result =
			timerhub_rearm(deed->hub, deed->timer, deed->at_ns, TIMERHUB_ABSOLUTE);
		break;
	case DRAIN:
		deed->result = timerhub_drain(deed->queue, deed->events, deed->max);
		break;
	case WAIT:
		deed->result = timerhub_wait(deed->queue, deed->events, deed->max, deed->at_ns);
		break;
	case ADVANCE:
		deed->result = timerhub_advance(deed->hub, deed->at_ns, NULL);
		break;
	case STOP:
		timerhub_queue_stop(deed->queue);
		break;
	}
}

static void *stopped_thread_main(void *arg)
{
	self = arg;
	deed_do(&self->deed);
	atomic_store(&self->over, true);
	return NULL;
}

/* Waits until the thread has stopped at its test point, or until its call has returned. */
static void wait_stopped_or_over(const struct stopped_thread *held)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;

	while (!atomic_load(&held->stopped) && !atomic_load(&held->over)) {
		expect_lt(monotonic_ns(), until_ns);
		sleep_ns(POLL_NS);
	}
}

/*
 * Starts a thread that makes the library call, and returns when the thread has stopped at the
 * point.
 */
static void stopped_thread_start(struct stopped_thread *held, enum test_point point)
{
	atomic_store(&held->stop_at, (int)point);
	thread_start(&held->thread, stopped_thread_main, held);
	wait_stopped_or_over(held);
	/* if false, the thread has never reached its test point */
	expect(atomic_load(&held->stopped));
}

/*
 * Lets the stopped thread continue, and returns when the thread has stopped at this point or
 * finished its call.
 */
static void stopped_thread_go_on_if_it_comes(struct stopped_thread *held, enum test_point point)
{
	atomic_store(&held->stopped, false);
	atomic_store(&held->stop_at, (int)point);
	atomic_store(&held->released, true);
	wait_stopped_or_over(held);
}

/* Lets the stopped thread continue, and waits until its library call has returned. */
static void stopped_thread_finish(struct stopped_thread *held)
{
	atomic_store(&held->released, true);
	thread_join(held->thread);
}

/* ---- what a manual hub delivers ---- */

static timerhub_timer arm_periodic(struct rig *rig, uint64_t at_ns, uint64_t interval_ns,
                                   uint64_t data)
{
	return arm(rig->queue, SPEC(.flags = TIMERHUB_ABSOLUTE, .expires_ns = at_ns,
	                            .interval_ns = interval_ns, .data = data));
}

static struct timerhub_event expect_event(struct rig *rig, uint64_t data)
{
	struct timerhub_event event = take_one(rig->queue);

	expect_eq(event.data, data);
	return event;
}

static bool queue_readable(const struct timerhub_queue *queue)
{
	return fd_readable(timerhub_queue_fd(queue));
}

static void expect_nothing(const struct rig *rig)
{
	expect_empty(rig->queue);
	expect(!queue_readable(rig->queue));
}

/*
 * Expects that a manual hub announces the time `at_ns`. The event with this data must come at this
 * time, and no event earlier.
 */
static void expect_at(struct rig *rig, uint64_t data, uint64_t at_ns)
{
	advance(rig->hub, at_ns - 1);
	expect_nothing(rig);
	advance(rig->hub, at_ns);
	expect_eq(expect_event(rig, data).expires_ns, at_ns);
}

static struct stopped_thread stopped_thread_of(struct rig *rig, enum deed_kind what)
{
	return (struct stopped_thread){ .deed = { .what = what,
		                                  .hub = rig->hub,
		                                  .queue = rig->queue,
		                                  .max = 8,
		                                  .at_ns = ARRIVES } };
}

static void expect_events(const struct stopped_thread *held, unsigned count, const char *data)
{
	expect_eq(held->deed.result, count);
	for (unsigned i = 0; i < count; i++)
		expect_eq(held->deed.events[i].data, data[i]);
}

/* ---- a claimed timer ---- */

/*
 * Thread A has claimed a timer, and is stopped before or after its push. Thread B re-arms it, or
 * cancels it and arms another in its slot: that deadline is kept though A never goes on.
 */
static void check_claimed(enum deed_kind what, enum test_point point, uint64_t b_ns, bool reuse)
{
	struct rig rig = rig_manual(2);
	struct stopped_thread a = stopped_thread_of(&rig, what);

	(void)arm_at(rig.queue, 1280, 'U');
	if (what == REARM)
		a.deed.timer = arm_at(rig.queue, 2560, 'A');
	advance(rig.hub, 1);
	a.deed.at_ns = 640;
	stopped_thread_start(&a, point);
	if (reuse) {
		expect_eq(timerhub_cancel(rig.hub, a.deed.timer), 0);
		(void)arm_at(rig.queue, b_ns, 'A');
	} else {
		expect_eq(timerhub_rearm(rig.hub, a.deed.timer, b_ns, TIMERHUB_ABSOLUTE), 0);
	}
	expect(fd_readable(timerhub_wake_fd(rig.hub)));
	(void)advance(rig.hub, 2);
	expect_at(&rig, 'A', b_ns);
	stopped_thread_finish(&a);
	expect_eq(a.deed.result, 0);
	expect_at(&rig, 'U', 1280);
	rig_close(&rig);
}

TEST(law_4_what_is_done_to_a_claimed_timer_waits_for_no_stopped_thread, 60)
{
	static const uint64_t b_ns[] = { 320, 640, 960 };

	for (unsigned i = 0; i < COUNT_OF(b_ns) * 8; i++) {
		expect_context("case", i, 0);
		check_claimed(i % 2 ? ARM : REARM,
		              i / 2 % 2 ? TEST_POINT_SUBMIT_BEFORE_PUSH
		                        : TEST_POINT_SUBMIT_AFTER_PUSH,
		              b_ns[i / 8], i / 4 % 2);
	}
}

/* ---- wait: between looking and blocking ---- */

static void *close_queue(void *arg)
{
	timerhub_queue_close(arg);
	return NULL;
}

TEST(waiter_about_to_block_does_not_miss_the_closing_which_waits_for_it, 60)
{
	struct rig rig = rig_manual(8);
	struct stopped_thread waiter = stopped_thread_of(&rig, WAIT);
	uint64_t before_ns = monotonic_ns();
	pthread_t closer;

	stopped_thread_start(&waiter, TEST_POINT_WAIT_BEFORE_SLEEP);
	thread_start(&closer, close_queue, rig.queue);
	sleep_ns(5 * MS);
	stopped_thread_finish(&waiter);
	thread_join(closer);
	expect_eq(waiter.deed.result, -ESHUTDOWN);
	expect_lt(monotonic_ns(), before_ns + ARRIVES);
	rig_close(&rig);
}

/* The event wakes both. */
TEST(stopped_waiter_does_not_take_the_wake_of_another, 60)
{
	struct rig rig = rig_manual(8);
	struct stopped_thread stopped = stopped_thread_of(&rig, WAIT);
	struct stopped_thread other = stopped_thread_of(&rig, WAIT);
	uint64_t before_ns = monotonic_ns();

	other.deed.max = 1;
	(void)arm_at(rig.queue, 128, 'X');
	(void)arm_at(rig.queue, 256, 'Y');
	stopped_thread_start(&stopped, TEST_POINT_WAIT_BEFORE_SLEEP);
	stopped_thread_start(&other, TEST_POINT_WAIT_BEFORE_SLEEP);
	atomic_store(&other.released, true);
	sleep_ns(5 * MS); /* By the end of this sleep the waiter has most likely blocked. */
	advance(rig.hub, 128);
	stopped_thread_finish(&other);
	expect_events(&other, 1, "X");
	/* the waiter was woken, and its wait did not time out */
	expect_lt(monotonic_ns(), before_ns + ARRIVES);
	advance(rig.hub, 256);
	stopped_thread_finish(&stopped);
	expect_events(&stopped, 1, "Y");
	expect_nothing(&rig);
	rig_close(&rig);
}

/* ---- periodic timers ---- */

/* Expects five periods, from the k-th on. */
static void expect_phase(struct rig *rig, uint64_t first_ns, uint64_t interval_ns, uint64_t k)
{
	for (uint64_t end = k + 5; k < end; k++)
		expect_at(rig, 'P', first_ns + k * interval_ns);
}

/*
 * A consumer has read that a periodic timer has expired, and then a re-arm moves the deadline
 * before the consumer reads it. Periods are not counted from the new deadline. The timer's state
 * does not show this re-arm, because an earlier one is unfinished.
 */
TEST(law_7_periods_are_not_counted_from_a_deadline_that_is_not_due, 60)
{
	struct rig rig = rig_manual(1);
	struct stopped_thread drainer = stopped_thread_of(&rig, DRAIN);
	struct stopped_thread rearmer = stopped_thread_of(&rig, REARM);
	timerhub_timer timer = arm_periodic(&rig, 1000, 1000, 'P');

	advance(rig.hub, 10);
	rearmer.deed.timer = timer;
	rearmer.deed.at_ns = 500;
	stopped_thread_start(&rearmer, TEST_POINT_SUBMIT_BEFORE_PUSH);
	advance(rig.hub, 1000); /* the timer is scheduled for 1000, and has been due since 500 */
	stopped_thread_start(&drainer, TEST_POINT_PAIR_HALF_READ);
	expect_eq(timerhub_rearm(rig.hub, timer, 1400, TIMERHUB_ABSOLUTE), 0);
	stopped_thread_go_on_if_it_comes(&drainer, TEST_POINT_CONSUME_BEFORE_REARM);
	advance(rig.hub, 1500);
	stopped_thread_finish(&drainer);
	expect_events(&drainer, 0, "");
	expect_eq(expect_event(&rig, 'P').count, 1);
	stopped_thread_finish(&rearmer);
	expect_phase(&rig, 1400, 1000, 1);
	rig_close(&rig);
}

/* ---- the owner between reading, pair and outbox ---- */

/* The owner has set it PENDING. Another timer takes its slot. */
TEST(law_3_cancel_before_the_owner_publishes, 60)
{
	for (uint64_t interval_ns = 0; interval_ns <= 1000; interval_ns += 1000) {
		struct rig rig = rig_manual(1);
		struct stopped_thread owner = stopped_thread_of(&rig, ADVANCE);
		timerhub_timer timer = arm_periodic(&rig, 128, interval_ns, 'X');

		expect_context("interval", interval_ns, 0);
		owner.deed.at_ns = 128;
		stopped_thread_start(&owner, TEST_POINT_OWNER_BEFORE_PUBLISH);
		expect_eq(timerhub_cancel(rig.hub, timer), 0);
		(void)arm_at(rig.queue, 512, 'Y');
		stopped_thread_finish(&owner);
		expect_nothing(&rig);
		advance(rig.hub, 511);
		expect_nothing(&rig);
		advance(rig.hub, 512);
		expect_event(&rig, 'Y');
		advance(rig.hub, 10000);
		expect_nothing(&rig);
		rig_close(&rig);
	}
}

/*
 * The owner has expired a periodic timer, but not yet put its handle into the queue. A consumer
 * delivers the event by an older handle, and the queue is closed. The next timer in the same slot
 * must still expire on time.
 */
TEST(law_2_slot_of_a_period_taken_before_its_queue_is_gone, 60)
{
	struct rig rig = rig_manual(1);
	struct rig other = { .hub = rig.hub };
	struct stopped_thread owner = stopped_thread_of(&rig, ADVANCE);
	timerhub_timer timer;
	pthread_t closer;
	uint32_t index;

	expect_eq(timerhub_queue_open(rig.hub, &other.queue, NULL), 0);
	index = other.queue->index;
	timer = arm_periodic(&other, 128, 1000, 'X');
	advance(rig.hub, 128);
	expect_eq(timerhub_rearm(rig.hub, timer, 256, TIMERHUB_ABSOLUTE), 0);
	owner.deed.at_ns = 256;
	stopped_thread_start(&owner, TEST_POINT_OWNER_BEFORE_PUBLISH);
	expect_event(&other, 'X');
	thread_start(&closer, close_queue, other.queue);
	while (ptr_load_relaxed(&rig.hub->queues[index]) != QUEUE_GONE)
		cpu_relax();
	stopped_thread_finish(&owner);
	thread_join(closer);
	(void)arm_at(rig.queue, 4096, 'Y');
	advance(rig.hub, 4096);
	expect_event(&rig, 'Y');
	rig_close(&rig);
}

/* ---- the stop of a queue ---- */

static const enum test_point waits[] = { TEST_POINT_WAIT_FOUND_NOTHING,
	                                 TEST_POINT_WAIT_BEFORE_SLEEP };

TEST(stop_is_seen_by_a_wait_about_to_block, 60)
{
	for (unsigned i = 0; i < COUNT_OF(waits); i++) {
		struct rig rig = rig_manual(8);
		struct stopped_thread waiter = stopped_thread_of(&rig, WAIT);

		waiter.deed.at_ns = TIMERHUB_NEVER;
		stopped_thread_start(&waiter, waits[i]);
		timerhub_queue_stop(rig.queue);
		stopped_thread_finish(&waiter);
		expect_eq(waiter.deed.result, -ESHUTDOWN);
		rig_close(&rig);
	}
}

/* The waiter returns before the stop wakes it, so the wake reaches no thread. */
TEST(stop_half_done_is_a_stop, 60)
{
	struct rig rig = rig_manual(8);
	struct stopped_thread stopper = stopped_thread_of(&rig, STOP);
	struct timerhub_event event;

	stopped_thread_start(&stopper, TEST_POINT_STOP_HALFWAY);
	expect_eq(timerhub_wait(rig.queue, &event, 1, TIMERHUB_NEVER), -ESHUTDOWN);
	stopped_thread_finish(&stopper);
	expect_eq(timerhub_wait(rig.queue, &event, 1, TIMERHUB_NEVER), -ESHUTDOWN);
	rig_close(&rig);
}

/*
 * Fills the queue with events of cancelled timers and one valid event. The owner takes all out of
 * the queue, to drop the cancelled ones, and is stopped before it puts the valid one back.
 */
static void stop_with_all_taken_out(struct rig *rig, struct stopped_thread *owner)
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
	*owner = stopped_thread_of(rig, ADVANCE);
	owner->deed.at_ns = cells * 64;
	stopped_thread_start(owner, TEST_POINT_OUTBOX_TAKEN_OUT);
}

TEST(law_9_what_the_owner_puts_back_is_told_again, 60)
{
	struct rig rig = rig_manual(8);
	struct timerhub_event events[8];
	struct stopped_thread owner;

	stop_with_all_taken_out(&rig, &owner);
	expect_eq(timerhub_drain(rig.queue, events, 8), 0);
	expect(!queue_readable(rig.queue));
	stopped_thread_finish(&owner);
	expect(queue_readable(rig.queue));
	expect_eq(timerhub_drain(rig.queue, events, 8), 2);
	expect(!queue_readable(rig.queue));
	rig_close(&rig);
}

/*
 * The owner is stopped before it records that it has rung: the kernel may give its CPU to the
 * consumer that the fd woke.
 */
TEST(law_9_drain_clears_what_a_stopped_owner_has_rung, 60)
{
	struct rig rig = rig_manual(8);
	struct stopped_thread owner = stopped_thread_of(&rig, ADVANCE);
	struct timerhub_event event;

	(void)arm_at(rig.queue, 128, 'X');
	owner.deed.at_ns = 128;
	stopped_thread_start(&owner, TEST_POINT_RING_BEFORE_COUNT);
	expect(queue_readable(rig.queue));
	expect_event(&rig, 'X');
	expect_eq(timerhub_drain(rig.queue, &event, 1), 0);
	expect(!queue_readable(rig.queue));
	stopped_thread_finish(&owner);
	(void)arm_at(rig.queue, 256, 'Y');
	expect_at(&rig, 'Y', 256);
	expect_nothing(&rig);
	rig_close(&rig);
}

TEST(stop_leaves_nothing_that_the_owner_puts_back, 60)
{
	static const uint64_t timeouts_ns[] = { 0, TIMERHUB_NEVER };

	for (unsigned i = 0; i < COUNT_OF(timeouts_ns); i++) {
		struct rig rig = rig_manual(8);
		struct stopped_thread waiter = stopped_thread_of(&rig, WAIT);
		struct stopped_thread owner;

		waiter.deed.at_ns = timeouts_ns[i];
		stop_with_all_taken_out(&rig, &owner);
		timerhub_queue_stop(rig.queue);
		stopped_thread_start(&waiter, TEST_POINT_WAIT_BEFORE_SLEEP);
		stopped_thread_go_on_if_it_comes(&waiter, TEST_POINT_WAIT_BEFORE_SLEEP);
		expect(!atomic_load(&waiter.over));
		stopped_thread_finish(&owner);
		stopped_thread_finish(&waiter);
		expect_events(&waiter, 2, "XY");
		expect_eq(timerhub_wait(rig.queue, waiter.deed.events, 8, 0), -ESHUTDOWN);
		rig_close(&rig);
	}
}
