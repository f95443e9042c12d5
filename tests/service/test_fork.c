/* SPDX-License-Identifier: MIT */
/*
 * Law 10 after a fork: calls on the parent's hub return -EOWNERDEAD; the child may close it, and
 * open one of its own.
 */
#include "refuse_calls.h"
#include "rig.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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
	timerhub_queue_stop(rig->queue);
	expect(handle == 0 && !queue && left_ns == 4711);
	for (unsigned i = 0; i < sizeof(event); i++)
		expect_eq(((unsigned char *)&event)[i], 0x5a);
}

/* In a child, opens a new hub and uses it. */
static void live_a_little(void)
{
	struct rig rig;

	threads_take_other_stacks();
	rig = rig_open(100);
	for (unsigned i = 0; i < 50; i++) {
		arm_after(rig.queue, i * 10 * US, i);
		expect_eq(take_one(rig.queue).data, i);
	}
	rig_close(&rig);
}

/* With armed timers, due timers and undelivered events, none of which the child may touch. */
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

static pid_t raw_clone(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* The close of the copy leaves the parent's descriptors as they are. */
static void child_is_told_and_closes(const struct rig *rig, timerhub_timer timer)
{
	struct rig mine = *rig;

	expect_told(rig, timer);
	rig_close(&mine);
}

/* What madvise(MADV_WIPEONFORK) is made to return (0 wipes nothing); -1: it is left as it is. */
static const int wipe_results[] = { -1, EINVAL, 0 };

/* By fork(), or by clone(2), which no handler of pthread_atfork() sees. */
TEST_LOOP(fork_child_is_told, 60, 2 * COUNT_OF(wipe_results))
{
	int result = wipe_results[_i / 2];

	if (result >= 0)
		refuse_wipes(result);
	make_child = _i % 2 == 0 ? fork : raw_clone;
	/* ThreadSanitizer takes the parent's threads for threads of a child made by clone() */
	run_with_child(_i % 2 == 0 ? child_is_told_and_closes : expect_told);
}

static void child_opens(const struct rig *rig, timerhub_timer timer)
{
	struct rig mine = *rig;
	unsigned fds = process_fd_count(), threads;

	live_a_little();
	expect_told(rig, timer);
	threads = process_thread_count();
	timerhub_queue_close(mine.queue);
	expect_eq(process_fd_count(), fds - 1);
	rig_close(&mine);
	expect_eq(process_thread_count(), threads);
	live_a_little();
}

TEST(fork_child_may_open_a_hub_of_its_own, 60)
{
	run_with_child(child_opens);
}

/* An advance would move only the child's copy. */
TEST(fork_child_of_a_manual_hub_is_told, 60)
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
TEST(fork_in_the_middle_of_others_calls, 60)
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
			 * a sanitizer's lock, held at the fork by another thread, stays locked in
			 * the child
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
 * The child's dispatch ends after the callback that forked; the rest and the fd are the parent's.
 */
TEST(fork_in_a_callback_leaves_the_parent_its_events, 20)
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

/* ---- a signal handler that forks inside a call ---- */

static struct rig split; /* the hub of this test */
static void *interrupt_wait(void *arg)
{
	while (!atomic_load(&crowd_stop))
		sleep_ns(10 * US);
	sleep_ns(20 * MS); /* by then the wait most likely blocks; the law holds if it does not */
	expect_eq(pthread_kill(*(pthread_t *)arg, SIGUSR1), 0);
	while (forked == 0)
		sleep_ns(10 * US);
	arm_after(split.queue, 0, 1);
	return NULL;
}

static void on_signal(int signal)
{
	char byte;

	(void)signal;
	forked = fork();
	if (forked == 0)
		(void)!read(go_on[0], &byte, 1);
}

/* Inside the wait's system call, which the kernel restarts in the child. */
TEST(fork_in_a_blocked_wait_ends_the_childs_wait, 60)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	pthread_t self = pthread_self(), thread;
	struct timerhub_event event;
	int result;

	/* a sanitizer would delay the signal until the wait returns, which it never does */
	if (sanitized())
		return;
	split = rig_open(10);
	expect_eq(pipe(go_on), 0);
	expect_eq(sigaction(SIGUSR1, &action, NULL), 0);
	thread_start(&thread, interrupt_wait, &self);
	atomic_store(&crowd_stop, true);
	result = timerhub_wait(split.queue, &event, 1, UINT64_MAX);
	if (forked == 0)
		_exit(result == -EOWNERDEAD ? 0 : 2);
	expect_eq(result, 1);
	thread_join(thread);
	arm_after(split.queue, 0, 1);
	expect(fd_readable_within(timerhub_queue_fd(split.queue), ARRIVES));
	expect_eq(write(go_on[1], "", 1), 1); /* the child goes on while the parent has an event */
	child_ends_well(forked);
	expect(fd_readable(timerhub_queue_fd(split.queue)));
	rig_close(&split);
}
