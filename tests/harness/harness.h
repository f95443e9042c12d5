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
 * that have the word in their name. A program needs a main() of its own only if it must do more
 * than run its tests.
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

/* For what must arrive: longer than any stall, shorter than the deadline of a far timer. */
#define ARRIVES (20 * SEC)

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Like ck_assert(), but free while it holds, and for any thread and forked child. */
#define expect(condition)                                                                          \
	do {                                                                                       \
		if (__builtin_expect(!(condition), 0))                                             \
			expect_failed(__FILE__, __LINE__, #condition);                             \
	} while (0)

/* holds any integer of up to 64 bits, signed or not */
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

/* Fails with the name of the broken invariant that `check` returns. */
#define expect_unbroken(check)                                                                     \
	do {                                                                                       \
		const char *broken_ = (check);                                                     \
		if (__builtin_expect(broken_ != NULL, 0))                                          \
			expect_failed(__FILE__, __LINE__, broken_);                                \
	} while (0)

_Noreturn void expect_failed(const char *file, int line, const char *what);
_Noreturn void expect_cmp_failed(const char *file, int line, const char *what, expect_number left,
                                 expect_number right);

/* What a later failure prints, such as the seed or the step. */
void expect_context(const char *what, uint64_t a, uint64_t b);

struct test {
	TTest test;
	int limit_s;
	int count;
	struct test *next;
};

/* Adds a test to those of the program. TEST_LOOP() calls it before main(). */
void test_add(struct test *test);

/*
 * Begins a test, which is run `times` times, with `_i` from 0. libcheck ends a run that takes
 * longer than `limit`, in seconds.
 */
#define TEST_LOOP(test_name, limit, times)                                                         \
	static void test_name##_fn(int _i);                                                        \
	static __attribute__((constructor)) void test_name##_add(void)                             \
	{                                                                                          \
		static struct test test = {                                                        \
			.test = { #test_name, test_name##_fn, __FILE__, __LINE__ },                \
			.limit_s = (limit),                                                        \
			.count = (int)(times),                                                     \
		};                                                                                 \
                                                                                                   \
		test_add(&test);                                                                   \
	}                                                                                          \
	static void test_name##_fn(int _i CK_ATTRIBUTE_UNUSED)

#define TEST(test_name, limit) TEST_LOOP(test_name, limit, 1)

/* Reads the arguments and the environment. */
void tests_begin(int argc, char **argv);
/* Returns the program's exit status. */
int tests_run(void);
/*
 * The machine refuses `what`: ends this test, or a child that it forked; the program ends as
 * skipped if no other test fails.
 */
_Noreturn void test_skips(const char *what, int error);

/* `count` times the requested length, less under a sanitizer, at least 1. */
unsigned scaled(unsigned count);
bool sanitized(void);

/* From the program's seed; dice with different salts are independent. */
struct dice dice_new(uint64_t salt);
/* Below 2^62: a power of two or the beginning of a wheel's bucket, or next to one. */
uint64_t dice_boundary(struct dice *dice);

uint64_t monotonic_ns(void);
void sleep_ns(uint64_t ns);
/*
 * Calls `attempt` with longer and longer margins until it says that it was in time, on a machine
 * that may stall.
 */
void until_in_time(bool (*attempt)(uint64_t margin_ns), uint64_t margin_ns);

void thread_start(pthread_t *ret_thread, void *(*run)(void *), void *arg);
void thread_join(pthread_t thread);
/*
 * In a forked child, before it starts threads: their stacks are larger, so that none lies where a
 * thread of the parent had one. ThreadSanitizer knows a thread by its stack's address.
 */
void threads_take_other_stacks(void);

/* Before a cancellation: tells AddressSanitizer about the frames that it unwinds. */
void thread_ends_here(void);
/* To the index-th of the process's CPUs, modulo their number. */
void thread_pin(unsigned index);

#endif
