/* SPDX-License-Identifier: MIT */
/* Every wait on a stopped queue returns at once; events still come, and all other calls work. */
#include "rig.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

TEST(stop_is_for_waits_that_come_later, 30)
{
	struct rig rig = rig_manual(4);
	struct timerhub_event event;

	expect_eq(timerhub_wait(rig.queue, &event, 1, 0), 0);
	timerhub_queue_stop(rig.queue);
	expect_eq(timerhub_wait(rig.queue, &event, 1, UINT64_MAX), -ESHUTDOWN);
	expect_eq(timerhub_wait(rig.queue, &event, 1, 0), -ESHUTDOWN);
	timerhub_queue_stop(rig.queue);
	expect_eq(timerhub_wait(rig.queue, &event, 1, UINT64_MAX), -ESHUTDOWN);
	rig_close(&rig);
}

TEST(stop_hands_out_what_has_expired_first, 30)
{
	struct rig rig = rig_manual(8);
	struct timerhub_event events[2];

	for (unsigned i = 0; i < 5; i++)
		arm_at(rig.queue, (1 + i) * 64, i);
	arm_at(rig.queue, 1000, 9);
	advance(rig.hub, 5 * 64);
	timerhub_queue_stop(rig.queue);
	expect_eq(timerhub_wait(rig.queue, events, 2, UINT64_MAX), 2);
	expect_eq(timerhub_wait(rig.queue, events, 2, UINT64_MAX), 2);
	expect_eq(timerhub_wait(rig.queue, events, 2, UINT64_MAX), 1);
	expect_eq(events[0].data, 4);
	expect_eq(timerhub_wait(rig.queue, events, 2, UINT64_MAX), -ESHUTDOWN);
	rig_close(&rig);
}

TEST(stop_leaves_every_other_call_as_it_was, 30)
{
	struct rig rig = rig_manual(8);
	struct timerhub_queue *other = queue_open(rig.hub);
	struct timerhub_event event;
	timerhub_timer timer;

	timerhub_queue_stop(rig.queue);
	timer = arm_at(rig.queue, 64, 1);
	expect_eq(timerhub_rearm(rig.hub, timer, 128, TIMERHUB_ABSOLUTE), 0);
	advance(rig.hub, 128);
	expect(fd_readable(timerhub_queue_fd(rig.queue)));
	expect_eq(timerhub_drain(rig.queue, &event, 1), 1);
	arm_at(rig.queue, 256, 2);
	advance(rig.hub, 256);
	expect_eq(timerhub_wait(rig.queue, &event, 1, UINT64_MAX), 1);
	arm_at(rig.queue, 320, 3);
	advance(rig.hub, 320);
	expect_eq(timerhub_dispatch(rig.queue, 1), 1);
	/* blocks until its timeout */
	expect_eq(timerhub_wait(other, &event, 1, MS), 0);
	rig_close(&rig);
}

/* ---- threads that wait ---- */

struct worker {
	struct timerhub_queue *queue;
	pthread_t thread;
	atomic_int tid;
	int result;
};

static void *wait_for_ever(void *argument)
{
	struct worker *worker = argument;
	struct timerhub_event event;

	atomic_store(&worker->tid, (int)syscall(SYS_gettid));
	worker->result = timerhub_wait(worker->queue, &event, 1, UINT64_MAX);
	return NULL;
}

TEST_LOOP(stop_ends_the_waits_in_progress, 60, 2)
{
	struct rig rig = rig_open(4);
	struct worker workers[4];

	for (unsigned i = 0; i < COUNT_OF(workers); i++) {
		workers[i] = (struct worker){ .queue = rig.queue };
		thread_start(&workers[i].thread, wait_for_ever, &workers[i]);
	}
	for (unsigned i = 0; i < COUNT_OF(workers); i++) {
		while (atomic_load(&workers[i].tid) == 0)
			sleep_ns(100 * US);
		if (_i == 0) /* in round 1, the stop finds workers at random points */
			thread_blocks(atomic_load(&workers[i].tid));
	}
	timerhub_queue_stop(rig.queue);
	for (unsigned i = 0; i < COUNT_OF(workers); i++) {
		thread_join(workers[i].thread);
		expect_eq(workers[i].result, -ESHUTDOWN);
	}
	rig_close(&rig);
}

TEST(stop_in_a_forked_child_is_nothing, 30)
{
	struct rig rig = rig_manual(4);
	struct timerhub_event event;
	pid_t child = fork();

	if (child == 0) {
		timerhub_queue_stop(rig.queue);
		_exit(timerhub_wait(rig.queue, &event, 1, UINT64_MAX) == -EOWNERDEAD ? 0 : 1);
	}
	child_ends_well(child);
	expect_eq(timerhub_wait(rig.queue, &event, 1, 0), 0);
	rig_close(&rig);
}
