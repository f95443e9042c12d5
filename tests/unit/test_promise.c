/* SPDX-License-Identifier: MIT */
/*
 * Tests the promise (the time by which the owner looks at its inbox). The promise decides which
 * callers must wake the owner. If a caller skips the wake, the owner must still see the caller's
 * inbox entry.
 */
#include "harness.h"

#include <stdatomic.h>
#include <stdio.h>

#include "owner/promise.h"

START_TEST(only_an_earlier_deadline_wants_a_wake)
{
	struct promise promise;
	uint64_t pass;

	promise_init(&promise, 0);
	promise_begin_pass(&promise);
	(void)promise_make(&promise, 1000);
	expect(promise_wants_wake(&promise, 0, &pass));
	expect(promise_wants_wake(&promise, 999, &pass));
	expect(!promise_wants_wake(&promise, 1000, &pass));
	expect(!promise_wants_wake(&promise, UINT64_MAX, &pass));
}
END_TEST

START_TEST(hub_that_waits_for_its_first_advance_wants_a_wake_but_for_never)
{
	struct promise promise;
	uint64_t pass;

	promise_init(&promise, UINT64_MAX);
	expect(promise_wants_wake(&promise, UINT64_MAX - 1, &pass));
	expect(!promise_wants_wake(&promise, UINT64_MAX, &pass));
	promise_init(&promise, 0);
	expect(!promise_wants_wake(&promise, 0, &pass));
}
END_TEST

START_TEST(second_look_is_wanted_only_when_the_promise_is_raised)
{
	struct promise promise;

	promise_init(&promise, 0);
	expect(promise_make(&promise, 1000));
	expect(!promise_make(&promise, 1000));
	expect(!promise_make(&promise, 500));
	expect(promise_make(&promise, 501));
	expect(promise_make(&promise, UINT64_MAX));
}
END_TEST

START_TEST(recorded_wake_spares_others_until_the_next_pass)
{
	struct promise promise;
	uint64_t pass, other;

	promise_init(&promise, 0);
	promise_begin_pass(&promise);
	(void)promise_make(&promise, 1000);
	expect(!promise_woken(&promise));
	expect(promise_wants_wake(&promise, 10, &pass));
	/*
	 * The first caller has not recorded its wake, so a second caller wakes the owner too. A
	 * second wake does no harm.
	 */
	expect(promise_wants_wake(&promise, 5, &other));
	promise_record_wake(&promise, pass);
	expect(promise_woken(&promise));
	expect(!promise_wants_wake(&promise, 5, &other));
	promise_begin_pass(&promise);
	expect(!promise_woken(&promise));
	expect(promise_wants_wake(&promise, 5, &other));
}
END_TEST

/*
 * Trap 4: a caller is stopped, and records its wake some passes later. The late record must not
 * stop other callers from waking the owner.
 */
START_TEST(record_of_an_old_pass_silences_nobody)
{
	struct promise promise;
	uint64_t old, pass;

	promise_init(&promise, 0);
	promise_begin_pass(&promise);
	(void)promise_make(&promise, 1000);
	expect(promise_wants_wake(&promise, 10, &old));
	promise_begin_pass(&promise);
	(void)promise_make(&promise, 1000);
	promise_record_wake(&promise, old);
	expect(!promise_woken(&promise));
	expect(promise_wants_wake(&promise, 10, &pass));
}
END_TEST

START_TEST(record_of_an_old_pass_does_not_hide_a_newer_one)
{
	struct promise promise;
	uint64_t old, pass;

	promise_init(&promise, 0);
	promise_begin_pass(&promise);
	(void)promise_make(&promise, 1000);
	expect(promise_wants_wake(&promise, 10, &old));
	promise_begin_pass(&promise);
	expect(promise_wants_wake(&promise, 10, &pass));
	promise_record_wake(&promise, pass);
	promise_record_wake(&promise, old);
	expect(promise_woken(&promise));
	expect(!promise_wants_wake(&promise, 10, &pass));
}
END_TEST

/*
 * The comment at the head of promise.c shows two columns of statements. Each column runs in a
 * thread of its own, in many rounds. The caller publishes an entry and then reads the promise. The
 * owner raises the promise and then looks for entries. A round fails if the caller skips the wake
 * and the owner misses the entry.
 */
static struct {
	struct promise promise;
	_Alignas(64) atomic_uint entry;
	/* progress of the two threads: 2 x round at a round's begin, 2 x round + 1 at its end */
	_Alignas(64) atomic_uint caller_at;
	_Alignas(64) atomic_uint owner_at;
	bool woken; /* true if the caller wakes the owner in this round, written by the caller */
	bool last;  /* true in the last round, written by the owner */
} race;

static void *caller_main(void *arg)
{
	(void)arg;
	for (unsigned round = 1; !race.last; round++) {
		uint64_t pass;

		threads_meet(&race.caller_at, &race.owner_at, 2 * round);
		atomic_store(&race.entry, round);
		race.woken = promise_wants_wake(&race.promise, 10, &pass);
		threads_meet(&race.caller_at, &race.owner_at, 2 * round + 1);
	}
	return NULL;
}

START_TEST(caller_who_does_not_wake_is_seen)
{
	unsigned rounds = scaled(150000), round = 0, neither = 0, spared = 0;
	uint64_t begin_ns = monotonic_ns();
	pthread_t caller;

	promise_init(&race.promise, 0);
	thread_start(&caller, caller_main, NULL);
	while (!race.last) {
		bool raised, seen;

		promise_begin_pass(&race.promise);
		(void)promise_make(&race.promise, 5);
		threads_meet(&race.owner_at, &race.caller_at, 2 * ++round);
		raised = promise_make(&race.promise, 100);
		seen = atomic_load(&race.entry) == round;
		race.last = round == rounds || is_enough(begin_ns);
		threads_meet(&race.owner_at, &race.caller_at, 2 * round + 1);
		expect(raised);
		spared += !race.woken;
		neither += !race.woken && !seen;
		(void)promise_make(&race.promise, 0);
	}
	thread_join(caller);
	expect_eq(neither, 0);
	printf("the caller did not wake in %u of %u rounds\n", spared, round);
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("promise", argc, argv);
	tests_add(only_an_earlier_deadline_wants_a_wake, 10);
	tests_add(hub_that_waits_for_its_first_advance_wants_a_wake_but_for_never, 10);
	tests_add(second_look_is_wanted_only_when_the_promise_is_raised, 10);
	tests_add(recorded_wake_spares_others_until_the_next_pass, 10);
	tests_add(record_of_an_old_pass_silences_nobody, 10);
	tests_add(record_of_an_old_pass_does_not_hide_a_newer_one, 10);
	tests_add(caller_who_does_not_wake_is_seen, 60);
	return tests_run();
}
