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
#include <time.h>

#include "dice.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define SEC UINT64_C(1000000000)
#define HOUR (3600 * SEC)

/*
 * How long a test waits for something that must come: longer than any stall of the machine, and
 * shorter than the deadline of a timer that must not expire during the test.
 */
#define ARRIVES (20 * SEC)

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Fails the test if the condition is false. Unlike ck_assert(), it costs next to nothing while the
 * condition is true, and any thread and any forked child may use it.
 */
#define expect(condition)                                                                          \
	do {                                                                                       \
		if (__builtin_expect(!(condition), 0))                                             \
			expect_failed(__FILE__, __LINE__, #condition);                             \
	} while (0)

/* An integer type that can hold any integer of up to 64 bits, signed or unsigned. */
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

/*
 * Fails the test if `check` is not NULL. `check` is the name of a broken invariant, as hub_check()
 * returns it, and the test prints it.
 */
#define expect_unbroken(check)                                                                     \
	do {                                                                                       \
		const char *broken_ = (check);                                                     \
		if (__builtin_expect(broken_ != NULL, 0))                                          \
			expect_failed(__FILE__, __LINE__, broken_);                                \
	} while (0)

_Noreturn void expect_failed(const char *file, int line, const char *what);
_Noreturn void expect_cmp_failed(const char *file, int line, const char *what, expect_number left,
                                 expect_number right);

/* Sets what a later failure prints in addition, such as the seed or the step. */
void expect_context(const char *what, uint64_t a, uint64_t b);

struct test {
	TTest test;
	int limit_s;
	int count;
	struct test *next;
};

/* Adds a test to those that the program runs. TEST_LOOP() calls it before main(). */
void test_add(struct test *test);

/*
 * Begins a test, which is run `times` times, with `_i` counting from 0. libcheck ends a run that
 * takes longer than `limit` seconds.
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

/* Reads the program's arguments and environment variables. */
void tests_begin(int argc, char **argv);
/* Runs the tests, and returns the exit status of the program. */
int tests_run(void);
/*
 * Ends this test, or a child that it has forked, because the machine refuses `what`. The program
 * counts as skipped if no other test fails.
 */
_Noreturn void test_skips(const char *what, int error);

/*
 * Returns `count`, multiplied by the requested length of the run. Under a sanitizer it is less, but
 * at least 1.
 */
unsigned scaled(unsigned count);
bool sanitized(void);

/*
 * Returns dice that begin with the program's seed. Dice with different salts are independent of
 * each other.
 */
struct dice dice_new(uint64_t salt);
/*
 * Returns a random number below 2^62 that is a power of two, the beginning of a bucket of the
 * timing wheel, or next to one of these.
 */
uint64_t dice_boundary(struct dice *dice);

/* Returns the time of a clock of the kernel. */
uint64_t clock_ns(clockid_t clock);
uint64_t monotonic_ns(void);
uint64_t wall_ns(void);
void sleep_ns(uint64_t ns);
/*
 * Calls `attempt` with longer and longer margins until it returns true, which means that it was in
 * time. So a test of real time also works on a machine that stalls now and then.
 */
void until_in_time(bool (*attempt)(uint64_t margin_ns), uint64_t margin_ns);

void thread_start(pthread_t *ret_thread, void *(*run)(void *), void *arg);
void thread_join(pthread_t thread);
/*
 * Lets the threads of a forked child have larger stacks, so that none lies where a thread of the
 * parent had one. ThreadSanitizer knows a thread by the address of its stack. Call it before the
 * child starts threads.
 */
void threads_take_other_stacks(void);

/*
 * Tells AddressSanitizer that the calling thread is about to end without returning from its
 * functions, by a cancellation or pthread_exit().
 */
void thread_ends_here(void);
/* Returns the first CPU that the calling thread may use. */
unsigned thread_first_cpu(void);
/* Pins the calling thread to that CPU. */
void thread_pin(void);

#endif
