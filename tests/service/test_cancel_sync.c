/* SPDX-License-Identifier: MIT */
/*
 * timerhub_cancel_sync() waits for the timer's callbacks, and for no others. That it waits for all
 * of them is tested by the simulation. Callbacks here run until the test lets them end, so a call
 * that returns too early is always noticed.
 */
#include "rig.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

struct stay {
	atomic_bool inside;
	atomic_bool let_out;
	atomic_bool left;
};

static void stay_inside(const struct timerhub_event *event)
{
	struct stay *stay = (struct stay *)(uintptr_t)event->data;

	atomic_store(&stay->inside, true);
	while (!atomic_load(&stay->let_out))
		sleep_ns(100 * US);
	atomic_store(&stay->left, true);
}

static void stay_wait_inside(struct stay *stay)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;

	while (!atomic_load(&stay->inside)) {
		expect(monotonic_ns() < until_ns);
		sleep_ns(100 * US);
	}
}

static void *dispatch_one(void *arg)
{
	struct rig *rig = arg;

	expect_eq(timerhub_dispatch(rig->queue, 1), 1);
	return NULL;
}

/* Calls timerhub_cancel_sync(), then checks that the callback has ended. */
struct canceller {
	struct rig *rig;
	timerhub_timer timer;
	struct stay *stay; /* of the callback that must have ended */
	int wanted;
	atomic_int tid;
	atomic_bool back;
	pthread_t thread;
};

static void *cancel_and_see(void *arg)
{
	struct canceller *me = arg;

	atomic_store(&me->tid, (int)syscall(SYS_gettid));
	expect_eq(timerhub_cancel_sync(me->rig->hub, me->timer), me->wanted);
	expect(atomic_load(&me->stay->left));
	atomic_store(&me->back, true);
	return NULL;
}

static atomic_uint period_next; /* number of the callbacks that have begun */

static void cancel_beside_another(const struct timerhub_event *event)
{
	int result;

	(void)atomic_fetch_add(&period_next, 1);
	while (atomic_load(&period_next) < 2)
		sleep_ns(100 * US);
	result = timerhub_cancel_sync(timerhub_queue_hub(event->queue), event->timer);
	expect(result == 0 || result == -ENOENT);
}

/* The first waits for the callback of the second, which must not wait for the first. */
TEST(cancel_sync_by_two_callbacks_of_one_timer_ends, 30)
{
	struct rig rig = rig_manual(8);
	pthread_t dispatchers[2];

	(void)arm(rig.queue,
	          SPEC(.expires_ns = 1, .interval_ns = 640, .fn = cancel_beside_another));
	for (unsigned i = 0; i < 2; i++) {
		advance(rig.hub, 64 + 640 * i);
		thread_start(&dispatchers[i], dispatch_one, &rig);
		while (atomic_load(&period_next) <= i)
			sleep_ns(100 * US);
	}
	for (unsigned i = 0; i < 2; i++)
		thread_join(dispatchers[i]);
	rig_close(&rig);
}

TEST(cancel_sync_waits_for_nobody_else, 60)
{
	/* one slot, so that the next timer uses the same */
	struct rig rig = rig_manual(1);
	struct stay stay = { false };
	timerhub_timer before = arm_after(rig.queue, 1, 0);
	timerhub_timer timer, next;
	pthread_t dispatcher;

	advance(rig.hub, 64);
	expect_eq(drain_all(rig.queue), 1);
	timer = arm(rig.queue, SPEC(.expires_ns = 1, .data = (uintptr_t)&stay, .fn = stay_inside));
	advance(rig.hub, 128);
	thread_start(&dispatcher, dispatch_one, &rig);
	stay_wait_inside(&stay);
	expect_eq(timerhub_cancel_sync(rig.hub, before), -ENOENT);
	next = arm_after(rig.queue, 100, 0);
	expect_eq(next & 0x3ffffff, timer & 0x3ffffff);
	expect_eq(timerhub_cancel_sync(rig.hub, next), 0);
	next = arm_after(rig.queue, 1, 0);
	advance(rig.hub, 256);
	expect_eq(drain_all(rig.queue), 1);
	expect_eq(timerhub_cancel_sync(rig.hub, next), -ENOENT);
	expect(!atomic_load(&stay.left));
	atomic_store(&stay.let_out, true);
	thread_join(dispatcher);
	expect_eq(timerhub_cancel_sync(rig.hub, timer), -ENOENT);
	rig_close(&rig);
}

/* ---- cancels from inside a callback ---- */

static struct rig inside_rig;
static timerhub_timer inside_timer;
static unsigned inside_calls;

/*
 * The first callback dispatches the second, which cancels the first timer: the library must see
 * that its callback runs on this thread, and not wait.
 */
static void dispatch_more(const struct timerhub_event *event)
{
	if (event->data == 0) {
		inside_timer = event->timer;
		expect_eq(timerhub_dispatch(inside_rig.queue, 1), 1);
	} else {
		expect_eq(timerhub_cancel_sync(inside_rig.hub, inside_timer), 0);
	}
	expect_eq(timerhub_cancel_sync(inside_rig.hub, event->timer), -ENOENT);
	inside_calls++;
}

TEST(cancel_sync_from_a_callback_within_cancels, 30)
{
	inside_rig = rig_manual(8);
	inside_calls = 0;
	arm(inside_rig.queue,
	    SPEC(.expires_ns = 64, .interval_ns = 6400, .data = 0, .fn = dispatch_more));
	arm(inside_rig.queue, SPEC(.expires_ns = 128, .data = 1, .fn = dispatch_more));
	advance(inside_rig.hub, 128);
	expect_eq(timerhub_dispatch(inside_rig.queue, 1), 1);
	expect_eq(inside_calls, 2);
	expect_eq(timerhub_cancel_sync(inside_rig.hub, inside_timer), -ENOENT);
	rig_close(&inside_rig);
}

/* ---- threads with the same number ---- */

/* On a stack of the test's: threads that have it one after the other have one thread pointer. */
static pthread_t thread_start_on(void *stack, size_t bytes, void *(*main)(void *), void *arg)
{
	pthread_attr_t attributes;
	pthread_t thread;

	expect_eq(pthread_attr_init(&attributes), 0);
	expect_eq(pthread_attr_setstack(&attributes, stack, bytes), 0);
	expect_eq(pthread_create(&thread, &attributes, main, arg), 0);
	expect_eq(pthread_attr_destroy(&attributes), 0);
	return thread;
}

static pthread_t ended; /* the thread that has ended inside the callback */

static void end_thread_or_stay(const struct timerhub_event *event)
{
	if (atomic_fetch_add(&period_next, 1) == 0) {
		ended = pthread_self();
		pthread_exit(NULL);
	}
	stay_inside(event);
}

static void *cancel_with_the_same_number(void *arg)
{
	expect(pthread_equal(pthread_self(), ended));
	return cancel_and_see(arg);
}

/*
 * timerhub_cancel_sync() waits while another thread runs the callback. The caller has the pthread_t
 * of a thread that ended inside the callback, but does not run the callback itself.
 */
TEST(cancel_sync_waits_although_a_thread_with_its_number_was_inside, 30)
{
	static _Alignas(4096) unsigned char stack[1 << 20];
	struct rig rig = rig_manual(8);
	struct stay stay = { false };
	struct canceller canceller = { .rig = &rig, .stay = &stay, .wanted = -ENOENT };
	pthread_t dispatcher;

	canceller.timer = arm(rig.queue, SPEC(.expires_ns = 1, .interval_ns = 640,
	                                      .data = (uintptr_t)&stay, .fn = end_thread_or_stay));
	advance(rig.hub, 64);
	thread_join(thread_start_on(stack, sizeof(stack), dispatch_one, &rig));
	advance(rig.hub, 704);
	thread_start(&dispatcher, dispatch_one, &rig);
	stay_wait_inside(&stay);
	expect_eq(timerhub_cancel(rig.hub, canceller.timer), 0);
	canceller.thread =
		thread_start_on(stack, sizeof(stack), cancel_with_the_same_number, &canceller);
	thread_begins_and_blocks(&canceller.tid);
	sleep_ns(20 * MS);
	expect(!atomic_load(&canceller.back));
	atomic_store(&stay.let_out, true);
	thread_join(canceller.thread);
	thread_join(dispatcher);
	rig_close(&rig);
}
