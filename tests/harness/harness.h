/* SPDX-License-Identifier: MIT */
/*
 * What all test programs share: running tests, seeded dice, cheap assertions, a clock, threads. It
 * knows nothing of the library; rig.h opens hubs, process.h looks at the process from outside.
 *
 *   TIMERHUB_TEST_SEED     seed of every random choice; printed by every run
 *   TIMERHUB_TEST_LENGTH   how many times longer than in CI (default 1)
 *
 * Arguments of every program: numbers are the seed and then the length, a word selects the tests
 * whose name contains it.
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

/* "Arrives at all": longer than any noise of the machine, shorter than any far timer. */
#define ARRIVES (20 * SEC)

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/*
 * As ck_assert, but costs nothing while it holds, and may be used by any thread and by forked
 * children: the process that fails ends with status 1.
 */
#define expect(condition)                                                                          \
	do {                                                                                       \
		if (__builtin_expect(!(condition), 0))                                             \
			expect_failed(__FILE__, __LINE__, #condition);                             \
	} while (0)

/* Any integer of 64 bits, signed or not: numbers are compared, whatever their types. */
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

/* Expects that a check names nothing that is broken; else fails with that name. */
#define expect_unbroken(check)                                                                     \
	do {                                                                                       \
		const char *broken_ = (check);                                                     \
		if (__builtin_expect(broken_ != NULL, 0))                                          \
			expect_failed(__FILE__, __LINE__, broken_);                                \
	} while (0)

_Noreturn void expect_failed(const char *file, int line, const char *what);
_Noreturn void expect_cmp_failed(const char *file, int line, const char *what, expect_number left,
                                 expect_number right);

/* A line that is printed with the next failure: which seed, which step. */
void expect_context(const char *what, uint64_t a, uint64_t b);

/* A program of tests. tests_add() takes what START_TEST defined; `limit_s` is when it is killed. */
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

/* `count` times the length asked for, divided by what a sanitizer slows down; at least 1. */
unsigned scaled(unsigned count);
bool sanitized(void);

/*
 * Is it enough for a race that began then? Its rounds are an effort, not a law: where two threads
 * hardly ever have a processor at the same time, fewer must do.
 */
bool is_enough(uint64_t begin_ns);

/* Two dice of one program with different salts have nothing in common. */
struct dice dice_new(uint64_t salt);
/*
 * At an edge, or one beside it: a power of two, or where a level of the wheel begins. Below 2^62.
 */
uint64_t dice_boundary(struct dice *dice);

uint64_t monotonic_ns(void);
void sleep_ns(uint64_t ns);
/*
 * For what must be prepared before a deadline comes: calls `attempt` with a longer and longer
 * margin, at first this one, until it says that it was in time. A machine may stand still.
 */
void until_in_time(bool (*attempt)(uint64_t margin_ns), uint64_t margin_ns);

void thread_start(pthread_t *ret_thread, void *(*run)(void *), void *arg);
void thread_join(pthread_t thread);

/*
 * Two threads begin a round together, as nearly as can be: each calls with its own word, the
 * other's, and a number that grows.
 */
void threads_meet(atomic_uint *mine, const atomic_uint *other, unsigned round);

/*
 * The calling thread is about to be cancelled: AddressSanitizer does not see those frames go which
 * are unwound by that.
 */
void thread_ends_here(void);
/* Keep the calling thread on the CPU with this index, modulo those that the process may use. */
void thread_pin(unsigned index);

#endif
