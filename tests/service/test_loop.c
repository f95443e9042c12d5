/* SPDX-License-Identifier: MIT */
/*
 * Timeouts of a loop with real clocks, descriptors, threads and forks, mostly for each way in which
 * a loop is woken. tests/unit/test_loop.c has the laws in virtual time.
 */
#include "forbid_system_calls.h"
#include "refuse_calls.h"
#include "rig.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NEVER UINT64_MAX

enum { ALONE, WITH_HUB, WITH_MANUAL_HUB, ALARMS };

struct item {
	struct timerhub_timeout timeout;
	unsigned calls;
	uint64_t called_ns; /* value of the loop's clock in the callback */
	uint64_t due_ns;    /* the deadline that the callback was called for */
	bool is_chain;      /* true: the callback sets the timeout again, to a delay of 0 */
};

/* of the running test: the loop, its hub (or NULL), a manual hub's time */
static struct timerhub_loop *loop;
static struct rig rig;
static uint64_t manual_ns;

static void on_item(struct timerhub_loop *of, struct timerhub_timeout *timeout)
{
	struct item *item = (struct item *)(void *)timeout;

	expect(of == loop);
	item->calls++;
	item->called_ns = rig.hub ? timerhub_now(rig.hub) : monotonic_ns();
	item->due_ns = timerhub_loop_due(of);
	expect_eq(timerhub_loop_update(of), timerhub_loop_now(of));
	if (item->is_chain)
		expect_eq(timerhub_timeout_set(loop, timeout, 0), 0);
}

static void loop_begin(int alarm)
{
	memset(&rig, 0, sizeof(rig));
	manual_ns = 0;
	if (alarm == WITH_HUB)
		rig = rig_open(1000);
	else if (alarm == WITH_MANUAL_HUB)
		rig = rig_manual(1000);
	expect_eq(timerhub_loop_open(&loop, rig.hub, NULL), 0);
	expect_eq(timerhub_loop_queue(loop) != NULL, rig.hub != NULL);
}

static void loop_end(void)
{
	timerhub_loop_close(loop);
	if (rig.hub)
		rig_close(&rig);
}

/* Lets at least `ns` nanoseconds pass on the loop's clock. */
static void pass_ns(int alarm, uint64_t ns)
{
	if (alarm != WITH_MANUAL_HUB) {
		sleep_ns(ns);
		return;
	}
	manual_ns += ns;
	(void)advance(rig.hub, manual_ns);
}

static void item_add(struct item *item)
{
	memset(item, 0, sizeof(*item));
	expect_eq(timerhub_timeout_add(loop, &item->timeout, on_item), 0);
}

/* ---- law 8: misuse ---- */

TEST(misuse_of_open_is_answered, 20)
{
	struct timerhub_loop *none = (struct timerhub_loop *)(uintptr_t)64;
	struct timerhub_loop *before = none;
	struct {
		struct timerhub_loop_config config;
		uint64_t later; /* members of a later version that this library does not know */
	} options = { .config = { .size = sizeof(options.config) } };

	expect_eq(timerhub_loop_open(NULL, NULL, NULL), -EINVAL);
	options.config.size = sizeof(options.config) - 1;
	expect_eq(timerhub_loop_open(&none, NULL, &options.config), -EINVAL);
	options.config.size = 0;
	expect_eq(timerhub_loop_open(&none, NULL, &options.config), -EINVAL);
	options.config.size = sizeof(options);
	options.later = 1;
	expect_eq(timerhub_loop_open(&none, NULL, &options.config), -E2BIG);
	options.later = 0;
	options.config.flags = 1u << 31;
	expect_eq(timerhub_loop_open(&none, NULL, &options.config), -EINVAL);
	rig = rig_manual(2);
	options.config.flags = TIMERHUB_LOOP_MANUAL;
	expect_eq(timerhub_loop_open(&none, rig.hub, &options.config), -EINVAL);
	rig_close(&rig);
	options.config.flags = 0;
	options.config.clock = TIMERHUB_CLOCK_REALTIME + 1;
	expect_eq(timerhub_loop_open(&none, NULL, &options.config), -EINVAL);
	options.config.clock = 0;
	options.config.timeouts_max = 67108863;
	expect_eq(timerhub_loop_open(&none, NULL, &options.config), -EINVAL);
	expect(none == before);
	options.config.timeouts_max = 1;
	expect_eq(timerhub_loop_open(&none, NULL, &options.config), 0);
	timerhub_loop_close(none);
	timerhub_loop_close(NULL);
}

/* A field of a packed struct. */
TEST_LOOP(misuse_of_a_packed_struct_is_answered, 20, ALARMS)
{
	_Alignas(8) char memory[64] = { 0 };
	struct timerhub_loop_stats stats = { .size = sizeof(stats) };

	loop_begin(_i);
	for (unsigned offset = 1; offset < 8; offset++) {
		struct timerhub_timeout *timeout = (void *)(memory + offset);

		expect_eq(timerhub_timeout_add(loop, timeout, on_item), -EINVAL);
	}
	for (unsigned i = 0; i < sizeof(memory); i++)
		expect_eq(memory[i], 0);
	expect_eq(timerhub_loop_stats(loop, &stats), 0);
	expect_eq(stats.added, 0);
	expect_eq(timerhub_timeout_add(loop, (void *)(memory + 8), on_item), 0);
	loop_end();
}

static int each_counts(struct timerhub_loop *of, struct timerhub_timeout *timeout, void *count)
{
	expect(of == loop);
	expect_eq(timerhub_timeout_is_added(timeout), 1);
	if (count)
		++*(unsigned *)count;
	return 0;
}

static int each_ends(struct timerhub_loop *of, struct timerhub_timeout *timeout, void *context)
{
	(void)context;
	expect(of == loop);
	expect_eq(timerhub_timeout_remove(of, timeout), 0);
	return 3;
}

static void expect_calls(struct timerhub_loop *of, struct timerhub_timeout *timeout, int result)
{
	expect_eq(timerhub_timeout_set(of, timeout, 1), result);
	expect_eq(timerhub_timeout_set_at(of, timeout, 1), result);
	expect_eq(timerhub_timeout_stop(of, timeout), result);
	expect_eq(timerhub_timeout_remove(of, timeout), result);
}

TEST_LOOP(misuse_of_calls_is_answered, 20, ALARMS)
{
	struct item item, other;
	struct timerhub_loop *second;

	loop_begin(_i);
	expect_eq(timerhub_loop_open(&second, NULL, NULL), 0);
	memset(&other, 0, sizeof(other));
	expect_eq(timerhub_timeout_add(loop, &other.timeout, NULL), -EINVAL);
	expect_eq(timerhub_timeout_add(loop, NULL, on_item), -EINVAL);
	expect_eq(timerhub_timeout_add(NULL, &other.timeout, on_item), -EINVAL);
	item_add(&item);
	expect_eq(timerhub_timeout_add(loop, &item.timeout, on_item), -EEXIST);
	expect_eq(timerhub_timeout_add(second, &item.timeout, on_item), -EEXIST);
	expect_calls(loop, &other.timeout, -EINVAL);
	expect_calls(second, &item.timeout, -EINVAL);
	expect_calls(NULL, &item.timeout, -EINVAL);
	expect_calls(NULL, &other.timeout, -EINVAL);
	expect_calls(loop, NULL, -EINVAL);
	expect_calls(NULL, NULL, -EINVAL);
	expect_eq(timerhub_timeout_is_added(NULL), 0);
	expect_eq(timerhub_timeout_is_added(&other.timeout), 0);
	expect_eq(timerhub_timeout_is_added(&item.timeout), 1);
	expect_eq(timerhub_timeout_is_set(NULL), 0);
	expect_eq(timerhub_timeout_is_set(&other.timeout), 0);
	expect_eq(timerhub_timeout_deadline(NULL), NEVER);
	expect_eq(timerhub_timeout_deadline(&other.timeout), NEVER);
	expect_eq(timerhub_loop_turn(NULL), -EINVAL);
	expect_eq(timerhub_loop_fd(NULL), -EINVAL);
	expect_eq(timerhub_loop_timeout(NULL), NEVER);
	expect_eq(timerhub_loop_now(NULL), 0);
	expect_eq(timerhub_loop_update(NULL), 0);
	expect_eq(timerhub_loop_due(NULL), NEVER);
	expect_eq(timerhub_loop_due(loop), NEVER);
	expect(timerhub_loop_queue(NULL) == NULL);
	for (unsigned i = 0; i < sizeof(other.timeout); i++) { /* memory that is not zero */
		memset(&other, 0, sizeof(other));
		((char *)&other.timeout)[i] = 1;
		expect_eq(timerhub_timeout_add(loop, &other.timeout, on_item), -EEXIST);
	}
	expect_eq(timerhub_timeout_set(loop, &item.timeout, HOUR), 0);
	timerhub_loop_close(second);
	loop_end();
	/* The close of the loop must have removed the timeout. */
	expect_eq(timerhub_timeout_is_set(&item.timeout), 0);
	expect_eq(item.timeout.owner, 0);
}

TEST_LOOP(misuse_of_a_loop_is_answered, 20, ALARMS)
{
	struct timerhub_loop_stats stats = { .size = sizeof(stats) - 1 };
	struct item item;

	loop_begin(_i);
	item_add(&item);
	expect_eq(timerhub_loop_settle(NULL, NULL), -EINVAL);
	expect_eq(timerhub_loop_adopt(NULL), -EINVAL);
	expect_eq(timerhub_loop_advance(NULL, 1), -EINVAL);
	expect_eq(timerhub_loop_advance(loop, HOUR), -EINVAL);
	expect_eq(timerhub_loop_timeout_ms(NULL), -1);
	expect_eq(timerhub_loop_each(NULL, each_ends, NULL), -EINVAL);
	expect_eq(timerhub_loop_each(loop, NULL, NULL), -EINVAL);
	expect_eq(timerhub_loop_stats(NULL, &stats), -EINVAL);
	expect_eq(timerhub_loop_stats(loop, NULL), -EINVAL);
	expect_eq(timerhub_loop_stats(loop, &stats), -EINVAL);
	stats.size = 1;
	expect_eq(timerhub_loop_stats(loop, &stats), -EINVAL);
	stats.size = 0;
	expect_eq(timerhub_loop_stats(loop, &stats), 0);
	expect_eq(stats.size, sizeof(stats));
	expect_eq(stats.added, 1);
	expect_eq(timerhub_loop_each(loop, each_ends, NULL), 3);
	expect_eq(timerhub_loop_each(loop, each_ends, NULL), 0);
	loop_end();
}

static void *stranger(void *argument)
{
	struct timerhub_loop_stats stats = { .size = sizeof(stats) };
	struct item *item = argument;
	struct item mine;

	memset(&mine, 0, sizeof(mine));
	expect_eq(timerhub_timeout_add(loop, &mine.timeout, on_item), -EPERM);
	expect_calls(loop, &item->timeout, -EPERM);
	expect_eq(timerhub_loop_turn(loop), -EPERM);
	expect_eq(timerhub_loop_settle(loop, NULL), -EPERM);
	expect_eq(timerhub_loop_advance(loop, HOUR), -EPERM);
	expect_eq(timerhub_loop_each(loop, each_ends, NULL), -EPERM);
	expect_eq(timerhub_loop_stats(loop, &stats), -EPERM);
	expect_eq(timerhub_loop_fd(loop), -EPERM);
	expect_eq(timerhub_loop_timeout(loop), 0);
	expect_eq(timerhub_loop_timeout_ms(loop), 0);
	expect_eq(timerhub_loop_update(loop), 0);
	return NULL;
}

#define STRANGERS_CALLS 14

static uint64_t loop_refused(void)
{
	struct timerhub_loop_stats stats = { .size = sizeof(stats) };

	expect_eq(timerhub_loop_stats(loop, &stats), 0);
	return stats.refused;
}

TEST_LOOP(another_thread_is_refused, 20, ALARMS)
{
	struct item item;
	pthread_t thread;

	loop_begin(_i);
	item_add(&item);
	expect_eq(timerhub_timeout_set(loop, &item.timeout, HOUR), 0);
	for (unsigned i = 1; i <= 3; i++) {
		thread_start(&thread, stranger, &item);
		thread_join(thread);
		expect_eq(loop_refused(), i * STRANGERS_CALLS);
	}
	expect_eq(timerhub_timeout_is_set(&item.timeout), 1);
	expect_eq(timerhub_loop_turn(loop), 0);
	/* other mistakes are not counted */
	expect_eq(timerhub_timeout_set(loop, &item.timeout, NEVER), -ERANGE);
	expect_eq(timerhub_timeout_add(loop, &item.timeout, on_item), -EEXIST);
	expect_eq(timerhub_loop_advance(loop, HOUR), -EINVAL);
	expect_eq(loop_refused(), 3 * STRANGERS_CALLS);
	loop_end();
}

/* ---- a loop that is locked ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned locked_calls;

static void loop_begin_with(int alarm, uint32_t flags)
{
	struct timerhub_loop_config config = { .size = sizeof(config), .flags = flags };

	loop_begin(alarm);
	timerhub_loop_close(loop);
	expect_eq(timerhub_loop_open(&loop, rig.hub, &config), 0);
}

/* A program may let go of its lock while it runs its own code. */
static void on_locked(struct timerhub_loop *of, struct timerhub_timeout *timeout)
{
	expect_eq(timerhub_loop_turn(of), -EBUSY);
	expect_eq(timerhub_loop_settle(of, NULL), -EBUSY);
	expect_eq(timerhub_loop_adopt(of), 0);
	expect_eq(timerhub_loop_timeout(of), 0);
	locked_calls++;
	expect_eq(timerhub_timeout_set(of, timeout, US), 0);
	expect_eq(pthread_mutex_unlock(&lock), 0);
	expect_eq(pthread_mutex_lock(&lock), 0);
}

/* Every call, by one of two threads in turn. */
static void *use_locked(void *own)
{
	struct timerhub_loop_stats stats = { .size = sizeof(stats) };
	struct item *item = own;

	for (unsigned i = 0; i < scaled(500); i++) {
		int result;

		expect_eq(pthread_mutex_lock(&lock), 0);
		memset(item, 0, sizeof(*item));
		expect_eq(timerhub_timeout_add(loop, &item->timeout, on_locked), 0);
		expect_eq(timerhub_timeout_set(loop, &item->timeout, US), 0);
		expect_eq(timerhub_timeout_set_at(loop, &item->timeout, 1), 0);
		expect_eq(timerhub_timeout_stop(loop, &item->timeout), 1);
		expect_eq(timerhub_timeout_set(loop, &item->timeout, 0), 0);
		expect_eq(timerhub_loop_adopt(loop), 0);
		expect_le(0, timerhub_loop_fd(loop));
		expect_le(timerhub_loop_timeout(loop), HOUR);
		expect_eq(timerhub_loop_update(loop), timerhub_loop_now(loop));
		result = timerhub_loop_turn(loop); /* another thread may be in a callback */
		expect(result >= 0 || result == -EBUSY);
		result = timerhub_loop_settle(loop, NULL);
		expect(result == 0 || result == -EBUSY);
		expect_le(0, timerhub_loop_timeout_ms(loop));
		expect_eq(timerhub_loop_each(loop, each_counts, NULL), 0);
		expect_eq(timerhub_loop_stats(loop, &stats), 0);
		expect_eq(stats.refused, 0);
		expect_eq(timerhub_timeout_remove(loop, &item->timeout), 0);
		expect_eq(pthread_mutex_unlock(&lock), 0);
	}
	return NULL;
}

TEST_LOOP(locked_loop_refuses_no_thread, 60, ALARMS)
{
	struct item items[2];
	pthread_t threads[2];

	loop_begin_with(_i, TIMERHUB_LOOP_LOCKED);
	locked_calls = 0;
	for (unsigned i = 0; i < 2; i++)
		thread_start(&threads[i], use_locked, &items[i]);
	for (unsigned i = 0; i < 2; i++)
		thread_join(threads[i]);
	if (_i != WITH_MANUAL_HUB)
		expect_lt(0, locked_calls);
	expect_eq(loop_refused(), 0);
	loop_end();
}

/* ---- fork ---- */

/* What a timeout of the forked loop is at the fork. */
enum { FAR, SOON, FRESH, PAST, STOPPED, STATES };

/* The parent's loop: the bits of the test's number. */
enum { BY_ANOTHER_THREAD = 1, IS_POLLED = 2, IS_LOCKED = 4, IS_ON_WALL = 8 };
/* The next bits, only for polled loops: clone() makes the child; the kernel wipes no memory. */
enum { BY_CLONE = 16, IS_NOT_WIPED = 32, FORKED_LOOPS = BY_CLONE + 3 };

static void *set_for_fork(void *own)
{
	struct item *items = own;

	for (unsigned i = 0; i < STATES; i++)
		item_add(&items[i]);
	expect_eq(timerhub_timeout_set(loop, &items[FAR].timeout, HOUR), 0);
	expect_eq(timerhub_timeout_set(loop, &items[SOON].timeout, SEC / 50), 0);
	expect_eq(timerhub_timeout_set(loop, &items[STOPPED].timeout, SEC / 50), 0);
	expect_eq(timerhub_loop_turn(loop), 0);
	expect_eq(timerhub_timeout_stop(loop, &items[STOPPED].timeout), 1);
	expect_eq(timerhub_timeout_set(loop, &items[FRESH].timeout, SEC / 100), 0);
	expect_eq(timerhub_timeout_set_at(loop, &items[PAST].timeout, 1), 0);
	return NULL;
}

static void set_for_fork_by(struct item *items, int kind)
{
	pthread_t thread;

	if ((kind & IS_POLLED) != 0)
		expect_le(0, timerhub_loop_fd(loop));
	if ((kind & BY_ANOTHER_THREAD) == 0) {
		(void)set_for_fork(items);
		return;
	}
	thread_start(&thread, set_for_fork, items);
	thread_join(thread);
}

/* Checks which calls a thread of the child may make before the child adopts the loop. */
static void *copy_may_change_only(void *own)
{
	struct item *items = own;
	struct item *far = &items[FAR];
	uint64_t far_ns = timerhub_timeout_deadline(&far->timeout);
	uint64_t refused = loop_refused();
	unsigned count = 0;
	struct item another;

	memset(&another, 0, sizeof(another));
	expect_eq(timerhub_loop_turn(loop), -EOWNERDEAD);
	expect_eq(timerhub_loop_settle(loop, NULL), -EOWNERDEAD);
	expect_eq(timerhub_loop_fd(loop), -EOWNERDEAD);
	expect_eq(timerhub_loop_advance(loop, HOUR), -EOWNERDEAD);
	expect_eq(timerhub_timeout_add(loop, &another.timeout, on_item), -EOWNERDEAD);
	expect_eq(timerhub_loop_timeout_ms(loop), 0);
	expect_eq(timerhub_loop_update(loop), 0);
	expect_eq(timerhub_loop_each(loop, each_counts, &count), 0);
	expect_eq(count, STATES);
	expect_eq(loop_refused(), refused);
	expect_eq(timerhub_timeout_is_set(&far->timeout), 1);
	expect_eq(timerhub_timeout_stop(loop, &far->timeout), 1);
	expect_eq(timerhub_timeout_set(loop, &far->timeout, 2 * HOUR), 0);
	expect_eq(timerhub_timeout_set_at(loop, &far->timeout, far_ns), 0);
	return NULL;
}

/* Calls all that is due within a second. */
static void run_adopted(struct item *items)
{
	static const unsigned calls[STATES] = { [SOON] = 1, [FRESH] = 1, [PAST] = 1 };
	unsigned left = 3;

	while (left > 0) {
		int count;

		expect(fd_readable_within(timerhub_loop_fd(loop), ARRIVES));
		count = timerhub_loop_turn(loop);
		expect_le(0, count);
		left -= (unsigned)count;
	}
	for (unsigned i = 0; i < STATES; i++)
		expect_eq(items[i].calls, calls[i]);
}

static void child_of_the_child_adopts(struct item *items)
{
	pid_t child = fork();

	expect_le(0, child);
	if (child == 0) {
		(void)copy_may_change_only(items);
		expect_eq(timerhub_loop_adopt(loop), 0);
		expect_eq(timerhub_timeout_set(loop, &items[FAR].timeout, 0), 0);
		expect_eq(timerhub_loop_turn(loop), 1);
		_exit(0);
	}
	child_ends_well(child);
}

static void adopt_and_run(struct item *items, int kind)
{
	uint64_t far_ns = timerhub_timeout_deadline(&items[FAR].timeout);
	bool is_locked = (kind & IS_LOCKED) != 0;
	unsigned fds = process_fd_count();
	pthread_t thread;

	expect_eq(timerhub_loop_adopt(loop), 0);
	fds -= (kind & IS_POLLED) != 0; /* the parent's timerfd */
	expect_eq(process_fd_count(), fds);
	expect_eq(timerhub_timeout_deadline(&items[FAR].timeout), far_ns);
	expect_eq(timerhub_loop_adopt(loop), 0);
	run_adopted(items);
	expect_eq(process_fd_count(), fds + 1);
	expect_lt(0, timerhub_loop_timeout_ms(loop));
	if (!is_locked && (kind & BY_CLONE) == 0) {
		thread_start(&thread, stranger, &items[FAR]);
		thread_join(thread);
		expect_eq(loop_refused(), STRANGERS_CALLS);
	}
	child_of_the_child_adopts(items);
	timerhub_loop_close(loop);
	expect_eq(process_fd_count(), fds);
}

static void forked_loop_begin(struct item *items, int kind)
{
	struct timerhub_loop_config config = {
		.size = sizeof(config),
		.flags = (kind & IS_LOCKED) != 0 ? TIMERHUB_LOOP_LOCKED : 0,
		.clock = (kind & IS_ON_WALL) != 0 ? TIMERHUB_CLOCK_REALTIME : 0,
	};

	memset(&rig, 0, sizeof(rig));
	expect_eq(timerhub_loop_open(&loop, NULL, &config), 0);
	set_for_fork_by(items, kind);
}

/* The parent's timeouts come as if there were no child. */
static void parent_goes_on(struct item *items, int kind)
{
	if ((kind & BY_ANOTHER_THREAD) != 0)
		expect_eq(timerhub_loop_adopt(loop), 0);
	expect_le(0, timerhub_loop_settle(loop, NULL));
	run_adopted(items);
	loop_end();
}

/* The child adopts its copy of the loop, and both go on, even if the kernel wipes no memory. */
TEST_LOOP(fork_child_adopts_the_loop, 60, FORKED_LOOPS)
{
	struct item items[STATES];
	int kind = _i < BY_CLONE ? _i : IS_POLLED | (_i - BY_CLONE + 1) * BY_CLONE;
	bool by_clone = (kind & BY_CLONE) != 0;
	pthread_t thread;
	pid_t child;

	if ((kind & IS_NOT_WIPED) != 0)
		refuse_wipes(EINVAL);
	forked_loop_begin(items, kind);
	child = by_clone ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
	expect_le(0, child);
	if (child == 0) {
		(void)copy_may_change_only(items);
		if (!by_clone) { /* ThreadSanitizer loses track of threads after clone() */
			threads_take_other_stacks();
			thread_start(&thread, copy_may_change_only, items);
			thread_join(thread);
		}
		adopt_and_run(items, kind);
		_exit(0);
	}
	child_ends_well(child);
	parent_goes_on(items, kind);
}

/* A forked child cannot adopt a loop that has a hub, manual or not: it may only change memory. */
static void *copy_with_a_hub(void *own)
{
	(void)copy_may_change_only(own);
	for (unsigned i = 0; i < 3; i++) {
		expect_eq(timerhub_loop_adopt(loop), -EOWNERDEAD);
		expect_eq(timerhub_loop_turn(loop), -EOWNERDEAD);
	}
	return NULL;
}

TEST_LOOP(fork_child_of_a_loop_with_a_hub_may_free, 60, 4)
{
	struct item *items = calloc(STATES, sizeof(*items));
	struct timerhub_loop *another = NULL;
	pthread_t thread;
	pid_t child;

	expect(items);
	loop_begin_with(_i % 2 > 0 ? WITH_HUB : WITH_MANUAL_HUB,
	                _i >= 2 ? TIMERHUB_LOOP_LOCKED : 0);
	set_for_fork_by(items, BY_ANOTHER_THREAD);
	child = fork();
	expect_le(0, child);
	if (child == 0) {
		threads_take_other_stacks();
		expect_eq(timerhub_loop_open(&another, rig.hub, NULL), -EOWNERDEAD);
		expect(another == NULL);
		(void)copy_with_a_hub(items);
		thread_start(&thread, copy_with_a_hub, items);
		thread_join(thread);
		for (unsigned i = 0; i < STATES; i++)
			expect_eq(timerhub_timeout_remove(loop, &items[i].timeout), 0);
		free(items); /* AddressSanitizer reports any access by the close */
		timerhub_loop_close(loop);
		rig_close(&rig);
		_exit(0);
	}
	child_ends_well(child);
	loop_end();
	free(items);
}

static void on_forking(struct timerhub_loop *of, struct timerhub_timeout *timeout)
{
	struct item *item = (struct item *)(void *)timeout;
	pid_t child = fork();

	expect_le(0, child);
	item->calls++;
	if (child == 0) {
		expect_eq(timerhub_loop_turn(of), -EOWNERDEAD);
		expect_eq(timerhub_loop_adopt(of), rig.hub ? -EOWNERDEAD : -EBUSY);
	} else {
		child_ends_well(child);
	}
}

TEST_LOOP(fork_in_a_callback_calls_no_other_in_the_child, 60, ALARMS)
{
	struct item items[3];
	pid_t parent = getpid();
	int result;

	loop_begin(_i);
	for (unsigned i = 0; i < COUNT_OF(items); i++) {
		item_add(&items[i]);
		expect_eq(timerhub_timeout_set_at(loop, &items[i].timeout, i), 0);
	}
	expect_eq(timerhub_timeout_remove(loop, &items[1].timeout), 0);
	expect_eq(timerhub_timeout_add(loop, &items[1].timeout, on_forking), 0);
	expect_eq(timerhub_timeout_set_at(loop, &items[1].timeout, 1), 0);
	pass_ns(_i, 10);
	expect_le(0, timerhub_loop_fd(loop));
	result = timerhub_loop_turn(loop);
	if (getpid() != parent) {
		expect_eq(result, 2);
		expect_eq(items[2].calls, 0);
		if (_i == ALONE) {
			expect_eq(timerhub_loop_adopt(loop), 0);
			expect_eq(timerhub_loop_turn(loop), 1);
			expect_eq(items[2].calls, 1);
		}
		timerhub_loop_close(loop);
		_exit(0);
	}
	expect_eq(result, 3);
	expect_eq(items[2].calls, 1);
	loop_end();
}

static int callback_began[2], callback_may_end[2];

static void on_holding(struct timerhub_loop *of, struct timerhub_timeout *timeout)
{
	char byte = 0;

	on_item(of, timeout);
	expect_eq(timerhub_timeout_set(of, timeout, SEC / 50), 0);
	expect_eq(write(callback_began[1], &byte, 1), 1);
	expect_eq(read(callback_may_end[0], &byte, 1), 1);
}

static void *turn_and_hold(void *own)
{
	struct item *items = own;

	for (unsigned i = 0; i < 2; i++) {
		memset(&items[i], 0, sizeof(items[i]));
		expect_eq(timerhub_timeout_add(loop, &items[i].timeout,
		                               i == 0 ? on_holding : on_item),
		          0);
	}
	expect_eq(timerhub_timeout_set_at(loop, &items[0].timeout, 1), 0);
	expect_eq(timerhub_timeout_set_at(loop, &items[1].timeout, 2), 0);
	expect_eq(timerhub_loop_turn(loop), 2);
	return NULL;
}

/* The callback goes on in the parent only; in the child its turn has ended. */
TEST(fork_while_another_thread_is_in_a_callback, 60)
{
	struct item items[2];
	char byte, bytes[2] = { 0 };
	pthread_t thread;
	pid_t child;

	loop_begin(ALONE);
	expect_eq(pipe(callback_began), 0);
	expect_eq(pipe(callback_may_end), 0);
	expect_le(0, timerhub_loop_fd(loop));
	thread_start(&thread, turn_and_hold, items);
	expect_eq(read(callback_began[0], &byte, 1), 1);
	child = fork();
	expect_le(0, child);
	if (child == 0) {
		/* one for the parent's callback, one for the child's */
		expect_eq(write(callback_may_end[1], bytes, sizeof(bytes)), sizeof(bytes));
		expect_eq(timerhub_loop_adopt(loop), 0);
		expect(fd_readable_within(timerhub_loop_fd(loop), ARRIVES));
		expect_eq(timerhub_loop_turn(loop), 1); /* items[1] */
		expect(fd_readable_within(timerhub_loop_fd(loop), ARRIVES));
		while (timerhub_loop_turn(loop) == 0)
			expect(fd_readable_within(timerhub_loop_fd(loop), ARRIVES));
		expect_eq(items[0].calls, 2);
		expect_eq(items[1].calls, 1);
		timerhub_loop_close(loop);
		_exit(0);
	}
	thread_join(thread);
	child_ends_well(child);
	expect_eq(items[1].calls, 1);
	loop_end();
}

/* As an event loop does. Returns the number of callbacks. */
static int block_and_turn(void)
{
	expect(fd_readable_within(timerhub_loop_fd(loop), ARRIVES));
	return timerhub_loop_turn(loop);
}

/* A timeout that the parent has set, and that nobody moves. */
TEST(fork_child_wakes_by_its_own_descriptor, 60)
{
	struct item item;
	pid_t child;

	loop_begin(ALONE);
	expect_le(0, timerhub_loop_fd(loop));
	item_add(&item);
	expect_eq(timerhub_timeout_set(loop, &item.timeout, SEC / 4), 0);
	expect_eq(timerhub_loop_settle(loop, NULL), 0);
	child = fork();
	expect_le(0, child);
	if (child == 0) {
		expect_eq(timerhub_loop_adopt(loop), 0);
		while (block_and_turn() == 0)
			;
		timerhub_loop_close(loop);
		_exit(0);
	}
	child_ends_well(child);
	loop_end();
}

/* Its callback sets the timeout to a delay of 0 again and again. */
TEST_LOOP(each_turn_that_leaves_due_work_gives_an_edge, 60, ALARMS)
{
	struct item item;
	int epoll_fd;

	loop_begin(_i);
	epoll_fd = edge_open(timerhub_loop_fd(loop));
	item_add(&item);
	item.is_chain = true;
	expect_eq(timerhub_timeout_set_at(loop, &item.timeout, 1), 0);
	pass_ns(_i, 1000);
	for (unsigned turn = 1; turn <= 100; turn++) {
		expect_eq(timerhub_loop_turn(loop), 1);
		expect(edge_seen(epoll_fd, ARRIVES));
		if (turn % 2 == 0) {
			expect_eq(timerhub_loop_settle(loop, NULL), 0);
			expect(edge_seen(epoll_fd, ARRIVES));
		}
	}
	expect_eq(close(epoll_fd), 0);
	loop_end();
}

/* ---- quiet ---- */

static void turn_quietly(struct item *items, unsigned count)
{
	for (unsigned turn = 0; turn < 1000; turn++) {
		for (unsigned i = 0; i < count; i++) {
			expect_eq(timerhub_timeout_set(loop, &items[i].timeout, HOUR + i), 0);
			if (i % 2 == 0)
				expect_eq(timerhub_timeout_stop(loop, &items[i].timeout), 1);
		}
		if (manual_ns > 0)
			expect_eq(timerhub_advance(rig.hub, ++manual_ns, NULL), 0);
		expect_eq(timerhub_loop_turn(loop), 0);
		expect_eq(timerhub_loop_settle(loop, NULL), 0);
	}
}

/* Odd: timeouts are moved to later times and stopped. 2 or more: a manual hub. */
TEST_LOOP(quiet_turns_make_no_system_call, 60, 4)
{
	struct item items[100];
	unsigned count = _i % 2 > 0 ? COUNT_OF(items) : 0;
	pid_t child = fork();

	expect_le(0, child);
	if (child == 0) {
		loop_begin(_i < 2 ? ALONE : WITH_MANUAL_HUB);
		expect_le(0, timerhub_loop_fd(loop));
		for (unsigned i = 0; i < COUNT_OF(items); i++)
			item_add(&items[i]);
		/* The first turn of the loop sets the timerfd. */
		for (unsigned i = 0; i < count; i++)
			expect_eq(timerhub_timeout_set(loop, &items[i].timeout, HOUR), 0);
		expect_eq(timerhub_loop_turn(loop), 0);
		if (rig.hub) /* clears what the turn has rung */
			pass_ns(WITH_MANUAL_HUB, 1);
		forbid_system_calls(SCMP_SYS(exit_group));
		turn_quietly(items, count);
		/* _exit() would write coverage counters by system calls */
		syscall(SYS_exit_group, EXIT_SUCCESS);
	}
	child_ends_well(child);
}

/* ---- a queue of the hub wakes the loop ---- */

static unsigned counted;

static void count_event(const struct timerhub_event *event)
{
	(void)event;
	counted++;
}

/* Each turn must handle about as many timeouts as events. */
TEST(storms_of_both_share_the_turns, 60)
{
	enum { COUNT = 900 };
	struct item *items = calloc(COUNT, sizeof(*items));
	unsigned calls = 0;

	expect(items);
	loop_begin(WITH_MANUAL_HUB);
	counted = 0;
	for (unsigned i = 0; i < COUNT; i++) {
		item_add(&items[i]);
		expect_eq(timerhub_timeout_set_at(loop, &items[i].timeout, 1), 0);
		expect_eq(timerhub_call(timerhub_loop_queue(loop), 0, count_event, NULL, NULL), 0);
	}
	pass_ns(WITH_MANUAL_HUB, 1000);
	for (unsigned turn = 1; calls < 2 * COUNT; turn++) {
		int count = timerhub_loop_turn(loop);

		calls += (unsigned)count;
		expect_le(count, 256);
		if (turn <= COUNT / 128) { /* the queue and the timeouts still have due events */
			expect_eq(count, 256);
			expect_le(127 * turn, counted);
			expect_le(127 * turn, calls - counted);
			expect_eq(timerhub_loop_timeout(loop), 0);
			expect(fd_readable(timerhub_loop_fd(loop)));
		}
		if (count == 0)
			break;
	}
	expect_eq(counted, COUNT);
	expect_eq(calls, 2 * COUNT);
	for (unsigned i = 0; i < COUNT; i++)
		expect_eq(items[i].calls, 1);
	loop_end();
	free(items);
}

/* While a turn has left events, timerhub_loop_timeout() returns 0, so that nobody blocks. */
TEST(events_that_a_turn_has_left_forbid_to_block, 20)
{
	enum { COUNT = 300 };

	loop_begin(WITH_MANUAL_HUB);
	counted = 0;
	for (unsigned i = 0; i < COUNT; i++)
		expect_eq(timerhub_call(timerhub_loop_queue(loop), 0, count_event, NULL, NULL), 0);
	pass_ns(WITH_MANUAL_HUB, 1000);
	while (counted < COUNT) {
		expect_lt(0, timerhub_loop_turn(loop));
		expect_eq(timerhub_loop_timeout(loop), counted < COUNT ? 0 : NEVER);
	}
	loop_end();
}

static void close_from_event(const struct timerhub_event *event)
{
	(void)event;
	counted++;
	timerhub_loop_close(loop);
}

/* No other callback is called, of the queue or of a timeout. */
TEST(close_in_a_callback_of_the_queue_ends_both, 20)
{
	struct item item;

	loop_begin(WITH_MANUAL_HUB);
	counted = 0;
	item_add(&item);
	expect_eq(timerhub_timeout_set_at(loop, &item.timeout, 10), 0);
	for (unsigned i = 0; i < 5; i++)
		expect_eq(
			timerhub_call(timerhub_loop_queue(loop), 10, close_from_event, NULL, NULL),
			0);
	pass_ns(WITH_MANUAL_HUB, 1000);
	expect_eq(timerhub_loop_turn(loop), 1);
	expect_eq(counted, 1);
	expect_eq(item.calls, 0);
	expect_eq(item.timeout.owner, 0);
	/* the timer with which the loop waits in the hub has been cancelled too */
	expect_eq(stats_of(rig.hub).live, 0);
	rig_close(&rig);
}

/* ---- open and close ---- */

TEST_LOOP(a_thousand_loops_leave_nothing, 120, ALARMS)
{
	unsigned fds, mappings;
	struct item item;

	loop_begin(_i); /* the first loop of a process allocates memory that is never freed */
	(void)timerhub_loop_fd(loop);
	timerhub_loop_close(loop);
	fds = process_fd_count();
	mappings = process_mapping_count();
	for (unsigned i = 0; i < scaled(1000); i++) {
		expect_eq(timerhub_loop_open(&loop, rig.hub, NULL), 0);
		item_add(&item);
		expect_le(0, timerhub_loop_fd(loop));
		expect_eq(timerhub_timeout_set(loop, &item.timeout, HOUR), 0);
		expect_eq(timerhub_loop_turn(loop), 0);
		timerhub_loop_close(loop);
	}
	expect_eq(process_fd_count(), fds);
	if (!sanitized())
		expect_le(process_mapping_count(), mappings + 2);
	if (rig.hub)
		rig_close(&rig);
}

TEST(resources_that_are_refused_are_told, 20)
{
	struct timerhub_loop *refused = NULL;
	struct item item;
	rlim_t before;

	loop_begin(ALONE);
	rig = rig_manual(1);
	before = process_limit_fds(0);
	expect_eq(timerhub_loop_fd(loop), -EMFILE);
	expect_eq(timerhub_loop_open(&refused, rig.hub, NULL), -EMFILE);
	(void)process_limit_fds(before);
	/* the new timer takes the only slot of the hub */
	(void)arm_after(rig.queue, HOUR, 0);
	expect_eq(timerhub_loop_open(&refused, rig.hub, NULL), -EAGAIN);
	expect(refused == NULL);
	/* After the refused calls, the loop must still work. */
	rig_close(&rig);
	rig.hub = NULL;
	item_add(&item);
	expect_eq(timerhub_timeout_set(loop, &item.timeout, 0), 0);
	expect_eq(timerhub_loop_turn(loop), 1);
	expect_le(0, timerhub_loop_fd(loop));
	loop_end();
}

/* _i is 0: timerfd_create() is refused; 1: timerfd_settime() */
TEST_LOOP(refused_timerfd_is_told_by_its_first_use, 20, 2)
{
	struct item item;
	unsigned fds;

	loop_begin(ALONE);
	item_add(&item);
	expect_eq(timerhub_timeout_set(loop, &item.timeout, HOUR), 0);
	expect_eq(timerhub_loop_turn(loop), 0);
	fds = process_fd_count();
	refuse_calls(_i == 0 ? SCMP_SYS(timerfd_create) : SCMP_SYS(timerfd_settime), EPERM);
	for (unsigned i = 0; i < 3; i++)
		expect_eq(timerhub_loop_fd(loop), -EPERM);
	expect_eq(process_fd_count(), fds);
	expect_eq(timerhub_loop_turn(loop), 0);
	loop_end();
}

TEST_LOOP(clocks_are_those_of_the_config, 60, 3)
{
	struct timerhub_loop_config config = { .size = sizeof(config), .clock = (uint32_t)_i };
	const clockid_t ids[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME };
	struct timespec before, after;
	struct item item;

	memset(&rig, 0, sizeof(rig));
	expect_eq(timerhub_loop_open(&loop, NULL, &config), 0);
	expect_eq(clock_gettime(ids[_i], &before), 0);
	expect_eq(timerhub_loop_turn(loop), 0);
	expect_eq(clock_gettime(ids[_i], &after), 0);
	expect_le((uint64_t)before.tv_sec * SEC + (uint64_t)before.tv_nsec,
	          timerhub_loop_now(loop));
	expect_le(timerhub_loop_now(loop), (uint64_t)after.tv_sec * SEC + (uint64_t)after.tv_nsec);
	item_add(&item);
	expect_le(0, timerhub_loop_fd(loop));
	expect_eq(timerhub_timeout_set(loop, &item.timeout, SEC / 50), 0);
	for (int count = timerhub_loop_turn(loop); count == 0; count = block_and_turn()) {
	}
	expect_eq(item.calls, 1);
	loop_end();
}
