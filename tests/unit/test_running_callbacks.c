/* SPDX-License-Identifier: MIT */
/*
 * A cell for each dispatching thread: a canceller waits for its timer's running callback and for
 * who is about to deliver it, for no other; a thread can ask whether it is inside a timer's
 * callback.
 */
#include "harness.h"

#include "base/test_point.h"
#include "queue/running_callbacks.h"
#include "timer/timer.h"

#define GENERATION 77
#define SLOT 5

static struct callbacks callbacks;
static uint64_t handle, other_slot, other_life;

static void setup(void)
{
	expect_eq(callbacks_open(&callbacks), 0);
	handle = handle_make(GENERATION, SLOT);
	other_slot = handle_make(GENERATION, SLOT + 1);
	other_life = handle_make(GENERATION + 1, SLOT);
}

/* A thread that calls callbacks_wait() for the timer with this handle. */
struct waiter {
	pthread_t thread;
	uint64_t handle;
	/* also for running callbacks, not only for a delivery */
	bool running;
	atomic_bool over;
};

static void *waiter_main(void *argument)
{
	struct waiter *waiter = argument;

	callbacks_wait(&callbacks, waiter->handle, waiter->running);
	atomic_store(&waiter->over, true);
	return NULL;
}

static void waiter_start(struct waiter *waiter, uint64_t of)
{
	*waiter = (struct waiter){ .handle = of, .running = true };
	thread_start(&waiter->thread, waiter_main, waiter);
}

/* Hangs if it waits. */
static void expect_no_wait(bool running)
{
	struct waiter waiter = { .handle = handle, .running = running };

	thread_start(&waiter.thread, waiter_main, &waiter);
	thread_join(waiter.thread);
}

TEST(nobody_waits_for_other_timers_nor_for_what_is_over, 20)
{
	struct callback *callback;

	setup();
	expect_no_wait(true);
	expect(!callbacks_inside(&callbacks, handle));
	callback = callbacks_enter(&callbacks, 0);
	expect_no_wait(true);
	callback_consider(callback, other_slot);
	expect_no_wait(true);
	callback_begin(callback, other_slot);
	expect_no_wait(true);
	callback_consider(callback, other_life);
	expect_no_wait(true);
	callback_begin(callback, other_life);
	expect_no_wait(true);
	callback_begin(callback, handle);
	expect_no_wait(false);
	callback_end(callback);
	expect_no_wait(true);
	callback_begin(callback, handle);
	callbacks_leave(callback);
	expect_no_wait(true);
	callbacks_close(&callbacks);
}

TEST(thread_knows_of_its_own, 20)
{
	struct callback *outer, *inner;

	setup();
	outer = callbacks_enter(&callbacks, 0);
	callback_begin(outer, handle);
	expect(callbacks_inside(&callbacks, handle));
	expect(!callbacks_inside(&callbacks, other_slot));
	expect(!callbacks_inside(&callbacks, other_life));
	/* as a callback that dispatches */
	inner = callbacks_enter(&callbacks, 0);
	expect(inner != outer);
	callback_consider(inner, other_slot);
	expect(callbacks_inside(&callbacks, handle));
	/* the callback of other_slot has not begun */
	expect(!callbacks_inside(&callbacks, other_slot));
	/* A thread does not wait for its own callback. */
	callbacks_wait(&callbacks, other_slot, true);
	callback_begin(inner, other_slot);
	expect(callbacks_inside(&callbacks, other_slot));
	callbacks_wait(&callbacks, other_slot, true);
	callbacks_wait(&callbacks, handle, true);
	callback_end(inner);
	callbacks_leave(inner);
	expect(!callbacks_inside(&callbacks, other_slot));
	expect(callbacks_inside(&callbacks, handle));
	callback_end(outer);
	expect(!callbacks_inside(&callbacks, handle));
	callbacks_leave(outer);
	callbacks_close(&callbacks);
}

static void *inside_main(void *argument)
{
	*(bool *)argument = callbacks_inside(&callbacks, handle);
	return NULL;
}

TEST(thread_is_not_inside_anothers, 20)
{
	struct callback *callback;
	pthread_t thread;
	bool inside = true;

	setup();
	callback = callbacks_enter(&callbacks, 0);
	callback_begin(callback, handle);
	thread_start(&thread, inside_main, &inside);
	thread_join(thread);
	expect(!inside);
	callback_end(callback);
	callbacks_leave(callback);
	callbacks_close(&callbacks);
}

TEST(who_waits_does_so_until_it_is_over, 60)
{
	struct callback *callback;
	struct waiter waiters[3];

	setup();
	callback = callbacks_enter(&callbacks, 3);
	for (unsigned round = 0; round < 20; round++) {
		bool decides = round % 2 == 1;

		if (decides)
			callback_consider(callback, handle);
		else
			callback_begin(callback, handle);
		for (unsigned i = 0; i < 3; i++)
			waiter_start(&waiters[i], handle);
		sleep_ns(2 * MS);
		for (unsigned i = 0; i < 3; i++)
			expect(!atomic_load(&waiters[i].over));
		if (decides)
			callback_consider(callback, other_life);
		else
			callback_end(callback);
		for (unsigned i = 0; i < 3; i++)
			thread_join(waiters[i].thread);
	}
	callbacks_leave(callback);
	callbacks_close(&callbacks);
}

static atomic_bool napping;

static void see_nap(enum test_point point)
{
	if (point == TEST_POINT_CALLBACK_BEFORE_NAP)
		atomic_store(&napping, true);
}

/*
 * Inside a callback it waits for no running one, but until the callback begins of a timer that is
 * about to be delivered.
 */
TEST(not_waiting_for_what_runs_still_waits_for_what_is_decided, 60)
{
	struct callback *callback;
	struct waiter waiter;

	setup();
	waiter = (struct waiter){ .handle = handle };
	callback = callbacks_enter(&callbacks, 3);
	callback_consider(callback, handle);
	test_point_hook = see_nap;
	thread_start(&waiter.thread, waiter_main, &waiter);
	while (!atomic_load(&napping))
		sleep_ns(MS);
	expect(!atomic_load(&waiter.over));
	callback_begin(callback, handle);
	thread_join(waiter.thread);
	callback_end(callback);
	callbacks_leave(callback);
	callbacks_close(&callbacks);
}
