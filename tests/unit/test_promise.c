/* SPDX-License-Identifier: MIT */
/*
 * Tests the promise (the time by which the owner looks at its inbox): which callers must wake the
 * owner. The simulation tests the races.
 */
#include "harness.h"

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

int main(int argc, char **argv)
{
	tests_begin("promise", argc, argv);
	tests_add(only_an_earlier_deadline_wants_a_wake, 10);
	tests_add(hub_that_waits_for_its_first_advance_wants_a_wake_but_for_never, 10);
	tests_add(second_look_is_wanted_only_when_the_promise_is_raised, 10);
	tests_add(recorded_wake_spares_others_until_the_next_pass, 10);
	tests_add(record_of_an_old_pass_silences_nobody, 10);
	tests_add(record_of_an_old_pass_does_not_hide_a_newer_one, 10);
	return tests_run();
}
