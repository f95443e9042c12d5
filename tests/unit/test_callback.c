/* SPDX-License-Identifier: MIT */
/*
 * Whose callback runs where: who waits does so until it is over, for that timer and for what may
 * turn out to be it, and for no other; a thread knows of its own.
 */
#include "harness.h"

#include "callback.h"
#include "check.h"
#include "timer.h"

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

/* Who waits, in a thread of its own. */
struct waiter {
	pthread_t thread;
	uint64_t handle;
	bool running; /* waits for what runs too */
	bool found;
	atomic_bool over;
};

static void *waiter_main(void *argument)
{
	struct waiter *waiter = argument;

	waiter->found = callbacks_wait(&callbacks, waiter->handle, waiter->running);
	atomic_store(&waiter->over, true);
	return NULL;
}

static void waiter_start(struct waiter *waiter, uint64_t of)
{
	*waiter = (struct waiter){ .handle = of, .running = true };
	thread_start(&waiter->thread, waiter_main, waiter);
}

START_TEST(nobody_inside_is_waited_for_by_nobody)
{
	struct callback *callback;

	setup();
	expect(!callbacks_wait(&callbacks, handle, true));
	expect(!callbacks_inside(&callbacks, handle));
	callback = callbacks_enter(&callbacks, 0);
	expect(!callbacks_wait(&callbacks, handle, true));
	callback_begin(callback, other_slot);
	expect(!callbacks_wait(&callbacks, handle, true));
	callback_begin(callback, other_life);
	expect(!callbacks_wait(&callbacks, handle, true));
	callback_begin(callback, handle);
	callback_end(callback);
	expect(!callbacks_wait(&callbacks, handle, true));
	callbacks_leave(callback);
	callbacks_close(&callbacks);
}
END_TEST

START_TEST(thread_knows_of_its_own)
{
	struct callback *outer, *inner;

	setup();
	outer = callbacks_enter(&callbacks, 0);
	callback_begin(outer, handle);
	expect(callbacks_inside(&callbacks, handle));
	expect(!callbacks_inside(&callbacks, other_slot));
	expect(!callbacks_inside(&callbacks, other_life));
	/* A callback may dispatch. */
	inner = callbacks_enter(&callbacks, 0);
	expect(inner != outer);
	callback_consider(inner, other_slot);
	expect(callbacks_inside(&callbacks, handle));
	expect(!callbacks_inside(&callbacks, other_slot));     /* not yet */
	expect(!callbacks_wait(&callbacks, other_slot, true)); /* not for itself */
	callback_begin(inner, other_slot);
	expect(callbacks_inside(&callbacks, other_slot));
	expect(!callbacks_wait(&callbacks, other_slot, true));
	expect(!callbacks_wait(&callbacks, handle, true));
	callback_end(inner);
	callbacks_leave(inner);
	expect(!callbacks_inside(&callbacks, other_slot));
	expect(callbacks_inside(&callbacks, handle));
	callback_end(outer);
	expect(!callbacks_inside(&callbacks, handle));
	callbacks_leave(outer);
	callbacks_close(&callbacks);
}
END_TEST

static void *inside_main(void *argument)
{
	*(bool *)argument = callbacks_inside(&callbacks, handle);
	return NULL;
}

START_TEST(thread_is_not_inside_anothers)
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
END_TEST

/* What runs is waited for, by several; what is being decided, of any life of the slot, too. */
START_TEST(who_waits_does_so_until_it_is_over)
{
	struct callback *callback;
	struct waiter waiters[3];

	setup();
	callback = callbacks_enter(&callbacks, 3);
	for (unsigned round = 0; round < 20; round++) {
		bool decides = round % 2 == 1;

		if (decides)
			callback_consider(callback, other_life);
		else
			callback_begin(callback, handle);
		for (unsigned i = 0; i < 3; i++)
			waiter_start(&waiters[i], handle);
		sleep_ns(2 * MS);
		for (unsigned i = 0; i < 3; i++)
			expect(!atomic_load(&waiters[i].over));
		if (decides)
			callback_begin(callback, other_life); /* so it was that one */
		else
			callback_end(callback);
		for (unsigned i = 0; i < 3; i++) {
			thread_join(waiters[i].thread);
			expect(decides || !waiters[i].found);
		}
		callback_end(callback);
	}
	callbacks_leave(callback);
	callbacks_close(&callbacks);
}
END_TEST

static atomic_bool napping;

static void see_nap(enum test_point point)
{
	if (point == TEST_POINT_CALLBACK_BEFORE_NAP)
		atomic_store(&napping, true);
}

/* Inside a callback: what runs is not waited for, what is being decided is. */
START_TEST(not_waiting_for_what_runs_still_waits_for_what_is_decided)
{
	struct waiter waiter = { .handle = handle_make(GENERATION, SLOT) };
	struct callback *callback;

	setup();
	callback = callbacks_enter(&callbacks, 3);
	callback_begin(callback, handle);
	thread_start(&waiter.thread, waiter_main, &waiter);
	thread_join(waiter.thread);
	expect(!waiter.found);
	callback_end(callback);
	callback_consider(callback, handle);
	waiter.over = false;
	test_point_hook = see_nap;
	thread_start(&waiter.thread, waiter_main, &waiter);
	while (!atomic_load(&napping))
		sleep_ns(MS);
	expect(!atomic_load(&waiter.over));
	callback_begin(callback, handle);
	thread_join(waiter.thread);
	expect(waiter.found);
	callback_end(callback);
	callbacks_leave(callback);
	callbacks_close(&callbacks);
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("callback", argc, argv);
	tests_add(nobody_inside_is_waited_for_by_nobody, 20);
	tests_add(thread_knows_of_its_own, 20);
	tests_add(thread_is_not_inside_anothers, 20);
	tests_add(who_waits_does_so_until_it_is_over, 60);
	tests_add(not_waiting_for_what_runs_still_waits_for_what_is_decided, 60);
	return tests_run();
}
