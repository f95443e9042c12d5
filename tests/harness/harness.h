/* SPDX-License-Identifier: MIT */
/*
 * The common parts of all test programs: running tests, seeded dice, cheap assertions, a clock,
 * threads. The harness uses no part of the library. rig.h opens hubs, process.h reads the state of
 * the process.
 *
 * TIMERHUB_TEST_SEED     seed of every random choice; printed by every run
 * TIMERHUB_TEST_LENGTH   how many times longer than in CI (default 1)
 *
 * Every program takes these arguments. The first number is the seed, the second is the length. A
 * word selects the tests whose name contains it.
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
 * Time limit for an event that must arrive: longer than any stall of the machine, shorter than any
 * far timer.
 */
#define ARRIVES (20 * SEC)

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Like ck_assert, but a check that holds costs nothing. Any thread and any forked child may use it.
 * The process that fails ends with status 1.
 */
#define expect(condition)                                                                          \
	do {                                                                                       \
		if (__builtin_expect(!(condition), 0))                                             \
			expect_failed(__FILE__, __LINE__, #condition);                             \
	} while (0)

/* Compares integers of up to 64 bits, signed or not, by their value. */
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

/* Fails if `broken` names a broken invariant, and prints the name. */
#define expect_unbroken(check)                                                                     \
	do {                                                                                       \
		const char *broken_ = (check);                                                     \
		if (__builtin_expect(broken_ != NULL, 0))                                          \
			expect_failed(__FILE__, __LINE__, broken_);                                \
	} while (0)

_Noreturn void expect_failed(const char *file, int line, const char *what);
_Noreturn void expect_cmp_failed(const char *file, int line, const char *what, expect_number left,
                                 expect_number right);

/* Sets a line that is printed with the next failure, such as the seed or the step. */
void expect_context(const char *what, uint64_t a, uint64_t b);

/*
 * A program of tests. tests_add() adds a test that is defined by START_TEST. The test is killed
 * after `limit_s` seconds.
 */
void tests_begin(const char *name, int argc, char **argv);
void tests_add(const TTest *test, int limit_s);
/* Runs the test `count` times, with `_i` counting from 0. */
void tests_add_loop(const TTest *test, int limit_s, int count);
/* Returns the exit status of the program: success, failure, or "skipped" after test_skips(). */
int tests_run(void);
/*
 * Prints that the machine refuses `what` with this errno, and ends the calling test, or a process
 * that the test has forked. The program runs its other tests. If none fails, it ends as skipped.
 */
_Noreturn void test_skips(const char *what, int error);

/* Returns `count` times the requested length, divided by a sanitizer's slowdown; at least 1. */
unsigned scaled(unsigned count);
bool sanitized(void);

/*
 * Returns whether a test of races that began at `begin_ns` has run long enough. On a machine where
 * two threads rarely run at the same time, a test ends by this with fewer rounds.
 */
bool is_enough(uint64_t begin_ns);

/* Dice with different salts are independent. */
struct dice dice_new(uint64_t salt);
/*
 * Returns a power of two, the beginning of a bucket on a level of the wheel, or a number next to
 * these. The number is below 2^62.
 */
uint64_t dice_boundary(struct dice *dice);

uint64_t monotonic_ns(void);
void sleep_ns(uint64_t ns);
/*
 * For tests that must prepare something before a deadline comes, on a machine that may stall. Calls
 * `attempt` with longer and longer margins, beginning with `margin_ns`, until it returns true
 * because it was in time.
 */
void until_in_time(bool (*attempt)(uint64_t margin_ns), uint64_t margin_ns);

void thread_start(pthread_t *ret_thread, void *(*run)(void *), void *arg);
void thread_join(pthread_t thread);

/*
 * Two threads begin a round at nearly the same time. Each thread passes its own word, the other
 * thread's word, and an increasing number.
 */
void threads_meet(atomic_uint *mine, const atomic_uint *other, unsigned round);

/*
 * Call this before the calling thread is cancelled. The call tells AddressSanitizer about the stack
 * frames that the cancellation unwinds.
 */
void thread_ends_here(void);
/* Keep the calling thread on the CPU with this index, modulo the CPUs that the process may use. */
void thread_pin(unsigned index);

#endif
