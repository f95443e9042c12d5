/* SPDX-License-Identifier: MIT */
/*
 * Law 10, after a fork: calls of the child on its parent's hub return -EOWNERDEAD. The child may
 * close the parent's hub and open a hub of its own.
 */
#include "rig.h"

#include <seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static pid_t (*make_child)(void) = fork;

static void expect_told(const struct rig *rig, timerhub_timer timer)
{
	struct timerhub_spec spec = SPEC(.expires_ns = 1);
	struct timerhub_queue *queue = NULL;
	timerhub_timer handle = 0;
	struct timerhub_event event;
	uint64_t left_ns = 4711;
	struct timerhub_stats stats;

	memset(&event, 0x5a, sizeof(event));
	expect_eq(timerhub_arm(rig->queue, &spec, &handle), -EOWNERDEAD);
	expect_eq(timerhub_after(rig->queue, 1, 0, &handle), -EOWNERDEAD);
	expect_eq(timerhub_call(rig->queue, 0, no_callback, NULL, &handle), -EOWNERDEAD);
	expect_eq(timerhub_arm_many(rig->queue, &spec, 1, &handle), -EOWNERDEAD);
	expect_eq(timerhub_rearm(rig->hub, timer, 1, 0), -EOWNERDEAD);
	expect_eq(timerhub_rearm(rig->hub, timer, SEC, TIMERHUB_ABSOLUTE), -EOWNERDEAD);
	expect_eq(timerhub_rearm_many(rig->hub, &timer, 1, SEC, 0), -EOWNERDEAD);
	expect_eq(timerhub_each(rig->hub, no_timer, NULL), -EOWNERDEAD);
	expect_eq(timerhub_cancel(rig->hub, timer), -EOWNERDEAD);
	expect_eq(timerhub_cancel_sync(rig->hub, timer), -EOWNERDEAD);
	expect_eq(timerhub_cancel_many(rig->hub, &timer, 1), -EOWNERDEAD);
	expect_eq(timerhub_remaining(rig->hub, timer, &left_ns), -EOWNERDEAD);
	expect_eq(timerhub_drain(rig->queue, &event, 1), -EOWNERDEAD);
	expect_eq(timerhub_wait(rig->queue, &event, 1, 0), -EOWNERDEAD);
	expect_eq(timerhub_wait(rig->queue, &event, 1, UINT64_MAX), -EOWNERDEAD);
	expect_eq(timerhub_dispatch(rig->queue, 1), -EOWNERDEAD);
	expect_eq(timerhub_queue_open(rig->hub, &queue, NULL), -EOWNERDEAD);
	expect_eq(timerhub_stats(rig->hub, &stats), -EOWNERDEAD);
	timerhub_interrupt(rig->queue);
	timerhub_queue_stop(rig->queue);
	expect(handle == 0 && !queue && left_ns == 4711);
	for (unsigned i = 0; i < sizeof(event); i++)
		expect_eq(((unsigned char *)&event)[i], 0x5a);
}

/*
 * ThreadSanitizer identifies a thread by the address of its stack. A thread of the child must
 * therefore not get a stack at an address where a thread of the parent had its stack. The stacks of
 * the child's threads are larger than the parent's stacks, and do not fit at these addresses.
 */
static void take_other_stacks(void)
{
	pthread_attr_t attributes;

	expect_eq(pthread_attr_init(&attributes), 0);
	expect_eq(pthread_attr_setstacksize(&attributes, 32u << 20), 0);
	expect_eq(pthread_setattr_default_np(&attributes), 0);
	expect_eq(pthread_attr_destroy(&attributes), 0);
}

/* In a child, opens a new hub and uses it. */
static void live_a_little(void)
{
	struct rig rig;

	take_other_stacks();
	rig = rig_open(100);
	for (unsigned i = 0; i < 50; i++) {
		arm_after(rig.queue, i * 10 * US, i);
		expect_eq(take_one(rig.queue).data, i);
	}
	rig_close(&rig);
}

/*
 * At the fork, the parent has armed timers, due timers and undelivered events. The calls of the
 * child must not affect the parent's timers and events.
 */
static void run_with_child(void (*child_main)(const struct rig *rig, timerhub_timer timer))
{
	struct rig rig = rig_open(1000);
	struct timerhub_queue *other = queue_open(rig.hub);
	timerhub_timer far = arm_after(rig.queue, HOUR, 999);
	unsigned taken = 0;
	pid_t child;

	for (unsigned i = 0; i < 100; i++)
		arm_after(rig.queue, i * 300 * US, i);
	arm_after(other, 0, 1);
	expect(fd_readable_within(timerhub_queue_fd(other), ARRIVES));
	child = make_child();
	if (child == 0) {
		child_main(&rig, far);
		_exit(EXIT_SUCCESS);
	}
	for (; taken < 100; taken++)
		expect_cmp(take_one(rig.queue).data, <, 100);
	child_ends_well(child);
	expect(fd_readable(timerhub_queue_fd(other)));
	expect_eq(drain_all(other), 1);
	expect_eq(timerhub_rearm(rig.hub, far, 0, 0), 0);
	expect_eq(take_one(rig.queue).data, 999);
	expect_empty(rig.queue);
	rig_close(&rig);
}

START_TEST(fork_child_is_told)
{
	run_with_child(expect_told);
}
END_TEST

static pid_t raw_clone(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* A child that no handler of pthread_atfork() has seen. */
START_TEST(fork_child_by_raw_clone_is_told)
{
	make_child = raw_clone;
	run_with_child(expect_told);
}
END_TEST

/*
 * Kernels before Linux 4.14 and filters refuse MADV_WIPEONFORK (EINVAL). Some emulators take any
 * advice, and do nothing (0).
 */
static const int wipe_results[] = { EINVAL, 0 };

START_TEST(fork_child_is_told_where_no_memory_is_wiped)
{
	int result = wipe_results[_i % 2];
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	expect(filter);
	expect_eq(seccomp_rule_add(filter, SCMP_ACT_ERRNO((uint32_t)result), SCMP_SYS(madvise), 1,
	                           SCMP_A2(SCMP_CMP_EQ, MADV_WIPEONFORK)),
	          0);
	if (result == 0)
		expect_eq(seccomp_rule_add(filter, SCMP_ACT_ERRNO(0), SCMP_SYS(madvise), 1,
		                           SCMP_A2(SCMP_CMP_MASKED_EQ, UINT32_MAX, UINT32_MAX)),
		          0);
	expect_eq(seccomp_load(filter), 0);
	seccomp_release(filter);
	make_child = _i < 2 ? fork : raw_clone;
	run_with_child(expect_told);
}
END_TEST

static void child_closes(const struct rig *rig, timerhub_timer timer)
{
	struct rig mine = *rig;
	unsigned fds = process_fd_count();
	unsigned threads = process_thread_count();

	timerhub_queue_close(mine.queue);
	expect_eq(process_fd_count(), fds - 1);
	expect_eq(timerhub_cancel(mine.hub, timer), -EOWNERDEAD);
	rig_close(&mine);
	expect_eq(process_thread_count(), threads);
}

START_TEST(fork_child_may_close)
{
	run_with_child(child_closes);
}
END_TEST

static void child_opens(const struct rig *rig, timerhub_timer timer)
{
	struct rig mine = *rig;

	live_a_little();
	expect_told(rig, timer);
	rig_close(&mine);
	live_a_little();
}

START_TEST(fork_child_may_open_a_hub_of_its_own)
{
	run_with_child(child_opens);
}
END_TEST

static void child_leaves(const struct rig *rig, timerhub_timer timer)
{
	(void)rig;
	(void)timer;
}

START_TEST(fork_child_may_just_leave)
{
	run_with_child(child_leaves);
}
END_TEST

/* When a child closes the parent's hub, it closes each of the hub's descriptors once. */
START_TEST(fork_child_close_leaves_no_fd)
{
	unsigned fds = process_fd_count();
	struct rig rig = rig_open(100);
	pid_t child = fork();

	if (child == 0) {
		rig_close(&rig);
		expect_eq(process_fd_count(), fds);
		_exit(EXIT_SUCCESS);
	}
	child_ends_well(child);
	rig_close(&rig);
	expect_eq(process_fd_count(), fds);
}
END_TEST

/*
 * In a child, timerhub_advance() would advance only the child's copy of the manual hub. The call
 * must fail.
 */
START_TEST(fork_child_of_a_manual_hub_is_told)
{
	struct rig rig = rig_manual(4);
	timerhub_timer timer = arm_after(rig.queue, 10, 1);
	pid_t child = fork();

	if (child == 0) {
		expect_eq(timerhub_advance(rig.hub, 20, NULL), -EOWNERDEAD);
		expect_told(&rig, timer);
		rig_close(&rig);
		_exit(EXIT_SUCCESS);
	}
	child_ends_well(child);
	expect_empty(rig.queue);
	advance(rig.hub, 128);
	expect_eq(take_one(rig.queue).data, 1);
	rig_close(&rig);
}
END_TEST

static atomic_bool crowd_stop;

static void *arm_and_take(void *arg)
{
	struct timerhub_queue *queue = queue_open(arg);

	for (unsigned i = 0; !atomic_load(&crowd_stop); i++) {
		arm_after(queue, i % 50 * US, i);
		expect_eq(take_one(queue).data, i);
	}
	timerhub_queue_close(queue);
	return NULL;
}

/* The process forks while other threads are inside calls. */
START_TEST(fork_in_the_middle_of_others_calls)
{
	struct rig rig = rig_open(1000);
	pthread_t threads[2];

	for (unsigned i = 0; i < COUNT_OF(threads); i++)
		thread_start(&threads[i], arm_and_take, rig.hub);
	for (unsigned i = 0; i < 20; i++) {
		pid_t child = fork();

		if (child == 0) {
			expect_eq(timerhub_after(rig.queue, 1, 0, NULL), -EOWNERDEAD);
			rig_close(&rig);
			/*
			 * If another thread held a sanitizer's lock at the fork, the lock stays
			 * locked in the child. In a sanitized build the child therefore opens no
			 * hub.
			 */
			if (i % 4 == 0 && !sanitized())
				live_a_little();
			_exit(EXIT_SUCCESS);
		}
		child_ends_well(child);
	}
	atomic_store(&crowd_stop, true);
	for (unsigned i = 0; i < COUNT_OF(threads); i++)
		thread_join(threads[i]);
	rig_close(&rig);
}
END_TEST

/* ---- a callback that forks ---- */

static int go_on[2]; /* pipe whose byte lets the child leave its callback */
static pid_t forked;

static void fork_once(const struct timerhub_event *event)
{
	char byte;

	(void)event;
	if (forked != 0)
		return;
	forked = fork();
	expect(forked >= 0);
	if (forked == 0) {
		forked = -1;
		expect_eq(read(go_on[0], &byte, 1), 1);
	}
}

/*
 * The child's timerhub_dispatch() ends after the callback that has forked. The remaining events and
 * the fd belong to the parent only.
 */
START_TEST(fork_in_a_callback_leaves_the_parent_its_events)
{
	struct rig rig = rig_manual(10);
	int count;

	expect_eq(pipe(go_on), 0);
	for (unsigned i = 0; i < 2; i++)
		expect_eq(timerhub_call(rig.queue, 1, fork_once, NULL, NULL), 0);
	advance(rig.hub, 64);
	count = timerhub_dispatch(rig.queue, 4);
	if (forked == -1)
		_exit(count == 1 && timerhub_dispatch(rig.queue, 4) == -EOWNERDEAD ? EXIT_SUCCESS
		                                                                   : EXIT_FAILURE);
	expect_eq(count, 2);
	arm_after(rig.queue, 1, 7);
	advance(rig.hub, 128);
	expect_eq(write(go_on[1], "", 1), 1);
	child_ends_well(forked);
	expect(fd_readable(timerhub_queue_fd(rig.queue)));
	expect_eq(take_one(rig.queue).data, 7);
	expect_empty(rig.queue);
	rig_close(&rig);
}
END_TEST

int main(int argc, char **argv)
{
	rigs_begin("fork", argc, argv);
	tests_add(fork_child_is_told, 60);
	tests_add(fork_child_by_raw_clone_is_told, 60);
	tests_add_loop(fork_child_is_told_where_no_memory_is_wiped, 60, 4);
	tests_add(fork_child_may_close, 60);
	tests_add(fork_child_may_open_a_hub_of_its_own, 60);
	tests_add(fork_child_may_just_leave, 60);
	tests_add(fork_child_of_a_manual_hub_is_told, 60);
	tests_add(fork_child_close_leaves_no_fd, 60);
	tests_add(fork_in_a_callback_leaves_the_parent_its_events, 20);
	tests_add(fork_in_the_middle_of_others_calls, 60);
	return tests_run();
}
