/* SPDX-License-Identifier: MIT */
/*
 * What the programs that look inside the library share: running tests, seeded dice, cheap
 * assertions, threads. The suites that use the public header alone have their own, in ../service.
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

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define SEC UINT64_C(1000000000)
#define HOUR (3600 * SEC)

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* As ck_assert, but costs nothing while it holds. Any thread. */
#define expect(condition)                                                                          \
	do {                                                                                       \
		if (__builtin_expect(!(condition), 0))                                             \
			expect_failed(__FILE__, __LINE__, #condition);                             \
	} while (0)

#define expect_cmp(left, op, right)                                                                \
	do {                                                                                       \
		uint64_t left_ = (uint64_t)(left);                                                 \
		uint64_t right_ = (uint64_t)(right);                                               \
		if (__builtin_expect(!(left_ op right_), 0))                                       \
			expect_cmp_failed(__FILE__, __LINE__, #left " " #op " " #right, left_,     \
			                  right_);                                                 \
	} while (0)

#define expect_eq(left, right) expect_cmp(left, ==, right)
#define expect_le(left, right) expect_cmp(left, <=, right)
#define expect_lt(left, right) expect_cmp(left, <, right)

_Noreturn void expect_failed(const char *file, int line, const char *what);
_Noreturn void expect_cmp_failed(const char *file, int line, const char *what, uint64_t left,
                                 uint64_t right);

/* A line that is printed with the next failure: which seed, which step. */
void expect_context(const char *what, uint64_t a, uint64_t b);

/* A program of tests. tests_add() takes what START_TEST defined; `limit_s` is when it is killed. */
void tests_begin(const char *name, int argc, char **argv);
void tests_add(const TTest *test, int limit_s);
int tests_run(void);

/* `count` times the length asked for, divided by what a sanitizer slows down; at least 1. */
unsigned scaled(unsigned count);

/*
 * Is it enough for a race that began then? Its rounds are an effort, not a law: where two threads
 * hardly ever have a processor at the same time, fewer must do.
 */
bool is_enough(uint64_t begin_ns);

struct dice {
	uint64_t state;
};

/* Two dice of one program with different salts have nothing in common. */
struct dice dice_new(uint64_t salt);
uint64_t dice_roll(struct dice *dice);
/* From 0 to bound - 1; `bound` at least 1. */
uint64_t dice_below(struct dice *dice, uint64_t bound);
bool dice_one_in(struct dice *dice, unsigned bound);
/* Below 2^bits, every magnitude as likely as the next. */
uint64_t dice_magnitude(struct dice *dice, unsigned bits);
/*
 * At an edge, or one beside it: a power of two, or where a level of the wheel begins. Below 2^62.
 */
uint64_t dice_boundary(struct dice *dice);

uint64_t monotonic_ns(void);
void sleep_ns(uint64_t ns);

void thread_start(pthread_t *ret_thread, void *(*run)(void *), void *arg);
void thread_join(pthread_t thread);

/*
 * Two threads begin a round together, as nearly as can be: each calls with its own word, the
 * other's, and a number that grows.
 */
void threads_meet(atomic_uint *mine, const atomic_uint *other, unsigned round);

#endif
