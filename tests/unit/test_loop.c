/* SPDX-License-Identifier: MIT */
/*
 * The laws of a loop's timeouts in virtual time, mostly without a hub, each test named for its law.
 * test_loop_model.c makes random calls. The linker wraps this program's allocations to count them.
 */
#include "loop_rig.h"
#include "queue/queue.h"
#include "rig.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define NEVER UINT64_MAX
#define CALLBACKS_MAX 256
#define START (5 * SEC)

static struct timerhub_loop *loop;

/* A timeout, with values that its callback records. */
struct item {
	struct timerhub_timeout timeout;
	unsigned calls;
	uint64_t called_at_ns; /* clock value in the turn that made the last call of the callback */
};

static unsigned calls;

static void on_item(struct timerhub_loop *of, struct timerhub_timeout *timeout)
{
	struct item *item = (struct item *)(void *)timeout;

	expect(of == loop);
	expect_eq(timerhub_timeout_is_set(timeout), 0);
	calls++;
	item->calls++;
	item->called_at_ns = timerhub_loop_now(loop);
}

static struct item *items_new(unsigned count)
{
	struct item *items = calloc(count, sizeof(*items));

	expect(items);
	calls = 0;
	loop = loop_rig_open(count, START);
	for (unsigned i = 0; i < count; i++)
		expect_eq(timerhub_timeout_add(loop, &items[i].timeout, on_item), 0);
	return items;
}

static void items_free(struct item *items)
{
	timerhub_loop_close(loop);
	free(items);
}

static int turn_at(uint64_t now_ns)
{
	loop_rig_move(loop, now_ns);
	return timerhub_loop_turn(loop);
}

/* Runs the loop until `until_ns`, as a program does that blocks. Returns how often it woke up. */
static unsigned run_until(uint64_t until_ns)
{
	unsigned wakes = 0;

	for (;;) {
		uint64_t timeout_ns = timerhub_loop_timeout(loop);
		uint64_t now_ns = clock_now_ns(&loop->clock);

		if (timeout_ns > until_ns - now_ns) {
			loop_rig_move(loop, until_ns);
			return wakes;
		}
		(void)turn_at(now_ns + timeout_ns);
		wakes++;
	}
}

/* ---- law 1: never early ---- */

static void slow_callback(struct timerhub_loop *of, struct timerhub_timeout *timeout)
{
	struct item *item = (struct item *)(void *)timeout;

	loop_rig_move(of, clock_now_ns(&of->clock) + 2 * SEC);
	expect_eq(timerhub_timeout_set(of, &item[1].timeout, SEC), 0);
	loop_rig_move(of, clock_now_ns(&of->clock) + 3 * SEC);
}

TEST(never_early_at_the_end_of_time, 20)
{
	struct item *items = items_new(3);

	expect_eq(timerhub_timeout_set(loop, &items[0].timeout, NEVER - 1 - START), 0);
	expect_eq(timerhub_timeout_set(loop, &items[0].timeout, NEVER - START), -ERANGE);
	expect_eq(timerhub_timeout_set(loop, &items[0].timeout, NEVER), -ERANGE);
	expect_eq(timerhub_timeout_set_at(loop, &items[1].timeout, NEVER), -ERANGE);
	expect_eq(timerhub_timeout_set_at(loop, &items[1].timeout, NEVER - 1), 0);
	/* beyond the largest deadline: stays set, and is not called */
	expect_eq(turn_at(START + SEC), 0);
	expect_eq(timerhub_timeout_deadline(&items[0].timeout), NEVER - 1);
	expect_eq(turn_at(NEVER - 2), 0);
	expect_eq(timerhub_timeout_set(loop, &items[2].timeout, 1), 0);
	expect_eq(timerhub_timeout_set(loop, &items[2].timeout, 2), -ERANGE);
	expect_eq(turn_at(NEVER - 1), 3);
	expect_eq(timerhub_timeout_set(loop, &items[2].timeout, 0), 0);
	expect_eq(timerhub_timeout_set(loop, &items[2].timeout, 1), -ERANGE);
	expect_eq(turn_at(NEVER), 1);
	items_free(items);
}

/* The 65th set makes the loop read its clock first, and the longest delay counts from that time. */
TEST(longest_delay_is_that_of_the_clock_that_counts, 20)
{
	struct item *items = items_new(TIMERHUB_LOOP_FRESH_MAX + 1);
	struct timerhub_timeout *last = &items[TIMERHUB_LOOP_FRESH_MAX].timeout;

	for (unsigned i = 0; i < TIMERHUB_LOOP_FRESH_MAX; i++)
		expect_eq(timerhub_timeout_set(loop, &items[i].timeout, SEC), 0);
	loop_rig_move(loop, START + 10);
	expect_eq(timerhub_timeout_set(loop, last, NEVER - 1 - (START + 5)), -ERANGE);
	expect_eq(timerhub_timeout_is_set(last), 0);
	expect_eq(timerhub_timeout_set(loop, last, NEVER - 1 - (START + 10)), 0);
	expect_eq(timerhub_timeout_deadline(last), NEVER - 1);
	items_free(items);
}

/* ---- statistics ---- */

TEST(stats_count_turns_that_were_slow_or_empty, 20)
{
	struct timerhub_loop_stats stats = { .size = sizeof(stats) };
	struct item *items = items_new(2);

	expect_eq(timerhub_timeout_remove(loop, &items[0].timeout), 0);
	expect_eq(timerhub_timeout_add(loop, &items[0].timeout, slow_callback), 0);
	expect_eq(timerhub_timeout_set_at(loop, &items[0].timeout, START), 0);
	expect_eq(turn_at(START + 1000), 1); /* takes 5 s, and sets the other */
	expect_eq(timerhub_timeout_stop(loop, &items[1].timeout), 1);
	(void)run_until(START + HOUR);
	expect_eq(timerhub_loop_turn(loop), 0);
	expect_eq(timerhub_loop_stats(loop, &stats), 0);
	expect_eq(stats.size, sizeof(stats));
	expect_eq(stats.added, 2);
	expect_eq(stats.set, 0);
	expect_eq(stats.callbacks, 1);
	expect_eq(stats.turn_max_ns, 5 * SEC);
	expect_eq(stats.lateness[9], 1); /* 1,000 ns */
	expect_le(1, stats.empty_wakes);
	expect_le(stats.empty_wakes, 2);
	expect_le(2 + stats.empty_wakes, stats.turns);
	items_free(items);
}

static uint64_t board_turns(void)
{
	return u64_load_relaxed(&loop->board->loop.turns);
}

static void adopted_child_counts(void)
{
	const struct board *parents = loop->board;
	rlim_t before;

	expect_eq(timerhub_loop_turn(loop), -EOWNERDEAD);
	before = process_limit_fds(0);
	expect_eq(timerhub_loop_adopt(loop), -EMFILE);
	expect(loop->board == parents);
	expect_eq(timerhub_loop_turn(loop), -EOWNERDEAD);
	(void)process_limit_fds(before);
	expect_eq(timerhub_loop_adopt(loop), 0);
	expect(loop->board != parents);
	expect_eq(loop->board->header.pid, getpid());
	expect_eq(loop->board->header.kind, BOARD_LOOP);
	for (unsigned i = 0; i < 100; i++)
		expect_eq(timerhub_loop_turn(loop), 0);
	expect_eq(board_turns(), 101);
	timerhub_loop_close(loop);
}

/* The child of fork() (0) or clone(2) (1) shares no counter with its parent, and shows its own. */
TEST_LOOP(adopted_child_of_an_observable_loop_has_its_own_board, 20, 2)
{
	struct timerhub_loop_config config = { .size = sizeof(config),
		                               .flags = TIMERHUB_LOOP_OBSERVABLE };
	pid_t child;

	expect_eq(timerhub_loop_open(&loop, NULL, &config), 0);
	expect_eq(timerhub_loop_turn(loop), 0);
	expect_eq(board_turns(), 1);
	child = _i == 0 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	expect_le(0, child);
	if (child == 0) {
		adopted_child_counts();
		_exit(0);
	}
	child_ends_well(child);
	expect_eq(board_turns(), 1);
	expect_eq(u32_load_acquire(&loop->board->header.state), BOARD_OPEN);
	timerhub_loop_close(loop);
}

static void *refused_thread(void *unused)
{
	(void)unused;
	for (unsigned i = 0; i < 7; i++)
		expect_eq(timerhub_loop_turn(loop), -EPERM);
	return NULL;
}

/* Although the loop's own thread makes no turn. */
TEST(refused_calls_are_on_the_board_at_once, 20)
{
	struct timerhub_loop_config config = { .size = sizeof(config),
		                               .flags = TIMERHUB_LOOP_OBSERVABLE };
	pthread_t thread;

	expect_eq(timerhub_loop_open(&loop, NULL, &config), 0);
	expect_eq(timerhub_loop_turn(loop), 0);
	thread_start(&thread, refused_thread, NULL);
	thread_join(thread);
	expect_eq(u64_load_relaxed(&loop->board->loop.refused), 7);
	expect_eq(timerhub_loop_turn(loop), 0);
	expect_eq(u64_load_relaxed(&loop->board->loop.refused), 7);
	timerhub_loop_close(loop);
}

/* ---- laws 4 and 5: memory, infallible after add ---- */

static unsigned allocations;

void *__real_mmap(void *, size_t, int, int, int, off_t);
void *__wrap_mmap(void *, size_t, int, int, int, off_t);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	allocations++;
	return __real_mmap(at, bytes, protection, flags, fd, offset);
}

void *__real_malloc(size_t);
void *__wrap_malloc(size_t);
void *__wrap_malloc(size_t bytes)
{
	allocations++;
	return __real_malloc(bytes);
}

int __real_posix_memalign(void **, size_t, size_t);
int __wrap_posix_memalign(void **, size_t, size_t);
int __wrap_posix_memalign(void **ret, size_t align, size_t bytes)
{
	allocations++;
	return __real_posix_memalign(ret, align, bytes);
}

TEST(no_allocation_after_open, 60)
{
	enum { COUNT = 20000 };
	struct item *items = items_new(COUNT);
	unsigned before = allocations;

	expect_lt(0, before); /* if `before` were 0, the allocations would not be counted */
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < COUNT; i++) {
			expect_eq(timerhub_timeout_set(loop, &items[i].timeout, i * round), 0);
			if (i % 7 == 0)
				(void)timerhub_timeout_stop(loop, &items[i].timeout);
			if (i % 11 == 0) {
				expect_eq(timerhub_timeout_remove(loop, &items[i].timeout), 0);
				expect_eq(timerhub_timeout_add(loop, &items[i].timeout, on_item),
				          0);
			}
		}
		while (turn_at(START + (round + 1) * SEC) > 0) {
		}
	}
	expect_eq(allocations, before);
	items_free(items);
}

/* ---- law 6: quiet ---- */

/* At most one wake for it. */
TEST(quiet_after_a_stop, 20)
{
	struct item *items = items_new(2);

	for (unsigned i = 0; i < 2; i++)
		expect_eq(timerhub_timeout_set(loop, &items[i].timeout, SEC), 0);
	expect_eq(timerhub_loop_turn(loop), 0);
	expect_eq(timerhub_timeout_stop(loop, &items[0].timeout), 1);
	expect_eq(timerhub_timeout_remove(loop, &items[1].timeout), 0);
	expect_le(run_until(START + HOUR), 1);
	expect_eq(timerhub_loop_timeout(loop), NEVER);
	expect_eq(calls, 0);
	items_free(items);
}

TEST(timeout_that_stays_wakes_a_small_loop_once, 20)
{
	enum { COUNT = 8 };
	struct item *items = items_new(COUNT);
	uint64_t now_ns = START;

	for (unsigned round = 0; round < 3; round++, now_ns += HOUR) {
		for (unsigned i = 0; i < COUNT; i++)
			expect_eq(timerhub_timeout_set(loop, &items[i].timeout, (i + 1) * SEC), 0);
		expect_eq(timerhub_loop_turn(loop), 0);
		/* one timeout is moved earlier now, and in the second round another one later */
		expect_eq(timerhub_timeout_set(loop, &items[0].timeout, SEC / 2), 0);
		expect_eq(timerhub_loop_turn(loop), 0);
		expect_eq(run_until(now_ns + SEC), 1);
		if (round == 1)
			expect_eq(timerhub_timeout_set(loop, &items[7].timeout, 30 * SEC), 0);
		expect_eq(run_until(now_ns + HOUR / 2), round == 1 ? COUNT + 1 : COUNT - 1);
		loop_rig_move(loop, now_ns + HOUR);
		expect_eq(calls, (round + 1) * COUNT);
		expect_eq(timerhub_loop_turn(loop), 0);
	}
	items_free(items);
}

/* A timeout that is removed just before its deadline leaves no entry that wakes the loop. */
TEST(quiet_after_a_remove_near_the_deadline, 20)
{
	struct item *items = items_new(9);

	expect_eq(timerhub_timeout_set(loop, &items[0].timeout, SEC), 0);
	expect_eq(timerhub_loop_turn(loop), 0);
	(void)run_until(START + SEC - SEC / 50); /* the entry on the grid has come up */
	expect_eq(items[0].timeout.filed_ns, START + SEC);
	expect_eq(timerhub_timeout_remove(loop, &items[0].timeout), 0);
	expect_eq(timerhub_loop_turn(loop), 0);
	expect_eq(timerhub_loop_timeout(loop), NEVER);
	items_free(items);
}

/* The ways to move the timeouts of 3 s. */
enum { BEATS_TOGETHER, BEATS_APART, BEATS_SLOW, BEATS_AT_RANDOM, BEATS_KINDS };

static uint64_t beat_gap_ns(unsigned kind, struct dice *dice)
{
	switch (kind) {
	case BEATS_SLOW:
		return 29 * SEC / 10;
	case BEATS_AT_RANDOM:
		return dice_below(dice, 29 * SEC / 10);
	default:
		return SEC;
	}
}

TEST_LOOP(quiet_however_many_timeouts_move, 120, 4 * BEATS_KINDS)
{
	const unsigned counts[] = { 8, 9, 10000, scaled(100000) };
	unsigned count = counts[_i / BEATS_KINDS], kind = (unsigned)_i % BEATS_KINDS;
	struct item *items = items_new(count);
	uint64_t *beats_ns = calloc(count, sizeof(*beats_ns));
	uint64_t length_ns = 3 * SEC, step_ns = SEC / 100, end_ns = START + 31 * SEC;
	struct dice dice = dice_new((uint64_t)_i);
	unsigned wakes = 0;

	expect(beats_ns);
	for (unsigned i = 0; i < count; i++) {
		beats_ns[i] = START + (kind == BEATS_TOGETHER ? 0 : dice_below(&dice, SEC));
		expect_eq(timerhub_timeout_set(loop, &items[i].timeout, length_ns), 0);
	}
	expect_eq(timerhub_loop_turn(loop), 0);
	for (uint64_t now_ns = START; now_ns < end_ns; now_ns += step_ns) {
		unsigned woken = run_until(now_ns);

		if (now_ns > START + SEC)
			wakes += woken;
		for (unsigned i = 0; i < count; i++)
			if (beats_ns[i] <= now_ns) {
				expect_eq(timerhub_timeout_set(loop, &items[i].timeout, length_ns),
				          0);
				beats_ns[i] = now_ns + beat_gap_ns(kind, &dice);
			}
		expect_eq(timerhub_loop_turn(loop), 0);
	}
	printf("%u timeouts of 3 s, beats %d: woke %u times in ten lengths\n", count, _i, wakes);
	expect_eq(calls, 0);
	expect_le(wakes, 10 * 16);
	free(beats_ns);
	items_free(items);
}

/* ---- law 7: storms ---- */

TEST_LOOP(storm_leaves_room_for_sockets, 120, 2)
{
	unsigned count = scaled(1000000), left = count;
	struct item *items = items_new(count);

	for (unsigned i = 0; i < count; i++)
		expect_eq(timerhub_timeout_set_at(loop, &items[i].timeout, START + SEC), 0);
	expect_eq(timerhub_loop_turn(loop), 0);
	if (_i > 0)
		(void)run_until(START + SEC - 1);
	while (left > 0) {
		unsigned expected = left < CALLBACKS_MAX ? left : CALLBACKS_MAX;

		expect_eq(turn_at(START + SEC), expected);
		left -= expected;
		expect_eq(timerhub_loop_timeout(loop), left > 0 ? 0 : NEVER);
	}
	for (unsigned i = 0; i < count; i++)
		expect_eq(items[i].calls, 1);
	items_free(items);
}

/* ---- the ABI ---- */

#define EXPECT_AT(type, member, offset, bytes)                                                     \
	do {                                                                                       \
		expect_eq(offsetof(struct type, member), offset);                                  \
		expect_eq(sizeof(((struct type *)NULL)->member), bytes);                           \
	} while (0)

TEST(layout_is_that_of_the_abi, 20)
{
	expect_eq(sizeof(struct timerhub_timeout), 32);
	EXPECT_AT(timerhub_timeout, deadline_ns, 0, 8);
	EXPECT_AT(timerhub_timeout, filed_ns, 8, 8);
	EXPECT_AT(timerhub_timeout, owner, 16, 8);
	EXPECT_AT(timerhub_timeout, place, 24, 4);
	EXPECT_AT(timerhub_timeout, fresh, 28, 1);
	EXPECT_AT(timerhub_timeout, is_listed, 29, 1);
	EXPECT_AT(timerhub_timeout, grid, 30, 1);
	EXPECT_AT(timerhub_timeout, reserved, 31, 1);
	EXPECT_AT(timerhub_loop_front, base_ns, 0, 8);
	EXPECT_AT(timerhub_loop_front, delay_max_ns, 8, 8);
	EXPECT_AT(timerhub_loop_front, thread, 16, 8);
	EXPECT_AT(timerhub_loop_front, fresh_count, 24, 4);
	EXPECT_AT(timerhub_loop_front, turning, 28, 4);
	EXPECT_AT(timerhub_loop_front, fresh, 32, 64 * sizeof(void *));
	expect_eq(offsetof(struct timerhub_loop, front), 0);
	expect_eq(sizeof(struct timerhub_loop_config), 24);
	expect_eq(TIMERHUB_LOOP_FRESH_MAX, 64);
}

/* ---- law 6, with a hub ---- */

static bool owner_is_late;

int __real_timerhub_dispatch(struct timerhub_queue *, unsigned);
int __wrap_timerhub_dispatch(struct timerhub_queue *, unsigned);
int __wrap_timerhub_dispatch(struct timerhub_queue *queue, unsigned max)
{
	int result = __real_timerhub_dispatch(queue, max);

	if (owner_is_late)
		expect(notifier_signal(&queue->notifier, 1));
	return result;
}

/*
 * The owner has published an event, and the loop has dispatched it before the owner writes to the
 * eventfd. The owner writes for no later event until the eventfd is cleared by a dispatch.
 */
TEST(eventfd_stays_readable_if_it_is_written_after_the_dispatch, 20)
{
	struct item item = { .calls = 0 };

	loop = loop_rig_open_kind(LOOP_RIG_ON_MANUAL_HUB, 1, START);
	expect_eq(timerhub_timeout_add(loop, &item.timeout, on_item), 0);
	expect_eq(timerhub_timeout_set_at(loop, &item.timeout, START), 0);
	expect_eq(timerhub_loop_settle(loop, NULL), 0);
	expect(fd_readable(timerhub_loop_fd(loop))); /* the loop has written for its timeout */
	owner_is_late = true;
	expect_eq(timerhub_loop_turn(loop), 1);
	owner_is_late = false;
	expect_eq(timerhub_call(timerhub_loop_queue(loop), 0, ignore_event, NULL, NULL), 0);
	loop_rig_move(loop, START + SEC);
	expect(fd_readable(timerhub_loop_fd(loop)));
	expect_eq(timerhub_loop_turn(loop), 1);
	expect(!fd_readable(timerhub_loop_fd(loop)));
	loop_rig_close(loop);
}

/* With the effect of the header's inline ones. */
TEST(functions_are_there_without_inlining, 20)
{
	struct item *items = items_new(1);

	for (unsigned i = 0; i < 100; i++) {
		expect_eq((timerhub_timeout_set)(loop, &items[0].timeout, SEC), 0);
		expect_eq((timerhub_timeout_stop)(loop, &items[0].timeout), 1);
		expect_eq((timerhub_timeout_stop)(loop, &items[0].timeout), 0);
		expect_eq((timerhub_timeout_set)(loop, &items[0].timeout, SEC), 0);
		expect_eq((timerhub_timeout_set_at)(loop, &items[0].timeout, START + i), 0);
		expect_eq(turn_at(START + i), 1);
	}
	items_free(items);
}
