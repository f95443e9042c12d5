/* SPDX-License-Identifier: MIT */
/*
 * What the service and the stress programs share: opening hubs the way the environment asks,
 * looking at the process from outside (/proc), seeded dice, and cheap assertions. Only the public
 * header of the library is used here.
 *
 *   TIMERHUB_TEST_SLEEPER  uring, poll or auto (default): the sleeper of every hub opened here
 *   TIMERHUB_TEST_OBSERVABLE  if set: every hub opened here is observable
 *   TIMERHUB_TEST_SEED     seed of every random choice; printed by every run
 *   TIMERHUB_TEST_LENGTH   how many times longer than in CI (default 1)
 *
 * Arguments of every program: numbers are the seed and then the length, a word selects the tests
 * whose name contains it.
 */
#ifndef TESTS_HUB_H
#define TESTS_HUB_H

#include <timerhub.h>

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define SEC UINT64_C(1000000000)
#define HOUR (3600 * SEC)

/* "Arrives at all": longer than any noise of the machine, shorter than any far timer. */
#define ARRIVES (20 * SEC)

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* What deadlines are told in. */
#define TICK UINT64_C(64)

#define SPEC(...) ((struct timerhub_spec){ .size = sizeof(struct timerhub_spec), __VA_ARGS__ })

/*
 * As ck_assert, but costs nothing while it holds, and may be used by any thread and by forked
 * children: the process that fails ends with status 1.
 */
#define expect(condition)                                                                          \
	do {                                                                                       \
		if (!(condition))                                                                  \
			expect_failed(__FILE__, __LINE__, #condition);                             \
	} while (0)

#define expect_eq(left, right) expect_cmp(left, ==, right)

#define expect_cmp(left, op, right)                                                                \
	do {                                                                                       \
		int64_t left_ = (int64_t)(left);                                                   \
		int64_t right_ = (int64_t)(right);                                                 \
		if (!(left_ op right_))                                                            \
			expect_cmp_failed(__FILE__, __LINE__, #left " " #op " " #right, left_,     \
			                  right_);                                                 \
	} while (0)

_Noreturn void expect_failed(const char *file, int line, const char *what);
_Noreturn void expect_cmp_failed(const char *file, int line, const char *what, int64_t left,
                                 int64_t right);

/* A program of tests. tests_add() takes what START_TEST defined; `limit_s` is when it is killed. */
void tests_begin(const char *name, int argc, char **argv);
void tests_add(const TTest *test, int limit_s);
/* Runs the test `count` times, with `_i` counting from 0. */
void tests_add_loop(const TTest *test, int limit_s, int count);
int tests_run(void);

/* `count` times the length asked for, divided by what a sanitizer slows down; at least 1. */
unsigned scaled(unsigned count);
bool sanitized(void);

struct dice {
	uint64_t state;
};

struct dice dice_new(uint64_t salt);
uint64_t dice_roll(struct dice *dice);
uint64_t dice_below(struct dice *dice, uint64_t bound);
/* Below 2^bits, every magnitude as likely as the next. */
uint64_t dice_magnitude(struct dice *dice, unsigned bits);

/* CLOCK_MONOTONIC. */
uint64_t clock_now_ns(void);
void clock_sleep_ns(uint64_t ns);
/*
 * For what must be prepared before a deadline comes: calls `attempt` with a longer and longer
 * margin, at first this one, until it says that it was in time. A machine may stand still.
 */
void until_in_time(bool (*attempt)(uint64_t margin_ns), uint64_t margin_ns);

bool fd_readable(int fd);
bool fd_readable_within(int fd, uint64_t timeout_ns);

unsigned process_fd_count(void);
/* Without those that are leaving: a joined thread lingers for a moment. */
unsigned process_thread_count(void);
/*
 * The same before any hub is open: a sanitizer's own thread included, which comes with the first.
 */
unsigned process_threads_at_rest(void);
unsigned process_mapping_count(void);
uint64_t process_rss_bytes(void);
/* Fails where the process has grown since it had that many bytes resident. */
void process_rss_is_still(uint64_t before_bytes);
/* Waits until the process has `count` threads. */
void process_settles_at_threads(unsigned count);

/* The thread with this name, or 0. */
pid_t thread_find(const char *name);
/* The value of a line such as "SigBlk:" in the thread's status file. */
uint64_t thread_status(pid_t tid, const char *key, int base);

/* Does the thread sleep in the kernel? */
bool thread_is_blocked(pid_t tid);
/* Waits until it does. */
void thread_blocks(pid_t tid);

void thread_start(pthread_t *ret_thread, void *(*run)(void *), void *arg);
void thread_join(pthread_t thread);
/*
 * The calling thread is about to be cancelled: AddressSanitizer does not see those frames go which
 * are unwound by that.
 */
void thread_ends_here(void);
/* Keep the calling thread on the CPU with this index, modulo those that the process may use. */
void thread_pin(unsigned index);

/* Waits for a child of ours and expects it to have ended with status 0. */
void child_ends_well(pid_t child);

/*
 * Tells why io_uring cannot be had here: 0 if it can, else an errno. Asks the kernel, not the
 * library; ENOSYS is the answer of a library that was built without.
 */
int uring_refused(void);
enum timerhub_sleeper sleeper_asked(void);

/* A hub with one queue. */
struct rig {
	struct timerhub *hub;
	struct timerhub_queue *queue;
};

struct rig rig_open(uint32_t timers_max);
struct rig rig_open_config(struct timerhub_config config); /* size and sleeper are filled in */
struct rig rig_manual(uint32_t timers_max);
void rig_close(struct rig *rig);

struct timerhub_queue *queue_open(struct timerhub *hub);
timerhub_timer arm(struct timerhub_queue *queue, struct timerhub_spec spec);
timerhub_timer arm_after(struct timerhub_queue *queue, uint64_t delay_ns, uint64_t data);
timerhub_timer arm_at(struct timerhub_queue *queue, uint64_t expires_ns, uint64_t data);

/* A deadline as it is told: in whole ticks. */
static inline uint64_t whole_ticks(uint64_t deadline_ns)
{
	return (deadline_ns + TICK - 1) / TICK * TICK;
}

/* Moves a manual hub and returns its next instant. */
uint64_t advance(struct timerhub *hub, uint64_t now_ns);
/* Arms so many timers of a manual hub, and moves it a microsecond on, when all have expired. */
void arm_and_expire(struct rig *rig, uint64_t *now_ns, unsigned count);
/* Takes one event, which must come within ARRIVES. */
struct timerhub_event take_one(struct timerhub_queue *queue);
/* Drains at most so many, 64 or fewer, and returns what that returned. */
int take_up_to(struct timerhub_queue *queue, unsigned max);
/* Drains all there is, and returns how many. */
unsigned drain_all(struct timerhub_queue *queue);
void expect_empty(struct timerhub_queue *queue);

struct timerhub_stats stats_of(struct timerhub *hub);
/*
 * Waits until the owner has done all that it was told, and has stayed asleep for a while; returns
 * the counters then. Every owner of the process must come to rest, but for those with names.
 */
struct timerhub_stats stats_settled(struct timerhub *hub);

#endif
