/* SPDX-License-Identifier: MIT */
/*
 * Declares the parts that all test programs share: a runner of tests, seeded dice, cheap
 * assertions, a clock, and threads. The harness uses no part of the library. rig.h opens hubs,
 * and process_usage.h reads the state of the process.
 *
 * TIMERHUB_TEST_SEED     seed of every random choice; every run prints its seed
 * TIMERHUB_TEST_LENGTH   factor by which the program runs longer than in CI (default 1)
 *
 * Every test program takes a seed, a length and a word as arguments. The word selects the tests
 * that have the word in their name.
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dice.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define SEC UINT64_C(1000000000)
#define HOUR (3600 * SEC)

/*
 * Time limit for an event that must arrive. The limit is longer than any stall of the machine, and
 * shorter than the deadline of any far timer.
 */
#define ARRIVES (20 * SEC)

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Fails the test if the condition is false, like ck_assert(). A check whose condition is true costs
 * nothing. Any thread and any forked child may use expect(). The process of a failed check ends
 * with status 1.
 */
#define expect(condition)                                                                          \
	do {                                                                                       \
		if (__builtin_expect(!(condition), 0))                                             \
			expect_failed(__FILE__, __LINE__, #condition);                             \
	} while (0)

/* Type in which expect_cmp() compares integers of up to 64 bits, signed or not, by their value. */
__extension__ typedef __int128 expect_number;

#define expect_cmp(left, op, right)                                                                \
	do {                                                                                       \
		expect_number left_ = (left);                                                      \
		expect_number right_ = (right);                                                    \
		if (__builtin_expect(!(left_ op right_), 0))                                       \
			expect_cmp_failed(__FILE__, __LINE__, #left " " #op " " #right, left_,     \
			                  right_);                                                 \
	} while (0)

#define expect_eq(left, right) expect_cmp(left, ==, right)
#define expect_le(left, right) expect_cmp(left, <=, right)
#define expect_lt(left, right) expect_cmp(left, <, right)

/* Fails if `check` returns the name of a broken invariant, and prints the name. */
#define expect_unbroken(check)                                                                     \
	do {                                                                                       \
		const char *broken_ = (check);                                                     \
		if (__builtin_expect(broken_ != NULL, 0))                                          \
			expect_failed(__FILE__, __LINE__, broken_);                                \
	} while (0)

_Noreturn void expect_failed(const char *file, int line, const char *what);
_Noreturn void expect_cmp_failed(const char *file, int line, const char *what, expect_number left,
                                 expect_number right);

/* Sets the line that is printed when a later check fails, such as the seed or the step. */
void expect_context(const char *what, uint64_t a, uint64_t b);

/*
 * Begins a program of tests. tests_add() adds a test that START_TEST has defined. The runner kills
 * the test after `limit_s` seconds.
 */
void tests_begin(const char *name, int argc, char **argv);
void tests_add(const TTest *test, int limit_s);
/* Runs the test `count` times. The test finds the number of its run in `_i`, counted from 0. */
void tests_add_loop(const TTest *test, int limit_s, int count);
/*
 * Runs the tests. Returns the exit status of the program: success, failure, or "skipped" after
 * test_skips().
 */
int tests_run(void);
/*
 * Prints that the machine refuses `what` with the errno `error`. Ends the calling test, or a
 * process that the calling test has forked. After test_skips() the program still runs the tests
 * after the skipped test. If a test was skipped and no test fails, the program ends as skipped.
 */
_Noreturn void test_skips(const char *what, int error);

/*
 * Returns `count` multiplied by the requested length, and divided by the slowdown of a sanitizer,
 * but at least 1.
 */
unsigned scaled(unsigned count);
bool sanitized(void);

/*
 * Returns a generator of random numbers (dice), seeded by `salt` and the seed of the program. Dice
 * with different salts are independent.
 */
struct dice dice_new(uint64_t salt);
/*
 * Returns a boundary, or a number next to a boundary. A boundary is a power of two, or the
 * beginning of a bucket of the wheel. The returned number is below 2^62.
 */
uint64_t dice_boundary(struct dice *dice);

uint64_t monotonic_ns(void);
void sleep_ns(uint64_t ns);
/*
 * Runs a test that must prepare something before a deadline comes, on a machine that may stall.
 * Calls `attempt` with longer and longer margins, beginning with `margin_ns`, until `attempt`
 * returns true. `attempt` returns true if the preparation was in time.
 */
void until_in_time(bool (*attempt)(uint64_t margin_ns), uint64_t margin_ns);

void thread_start(pthread_t *ret_thread, void *(*run)(void *), void *arg);
void thread_join(pthread_t thread);

/*
 * A thread must call thread_ends_here() before it is cancelled. thread_ends_here() tells
 * AddressSanitizer about the stack frames that the cancellation unwinds.
 */
void thread_ends_here(void);
/*
 * Keeps the calling thread on one CPU. `index` chooses among the CPUs that the process may use,
 * modulo their number.
 */
void thread_pin(unsigned index);

#endif
