/* SPDX-License-Identifier: MIT */
/*
 * A thread ends inside a callback, by pthread_exit() or cancellation: the event counts as
 * delivered, nothing of the thread is kept, and who waits for the callback goes on.
 * Exceptions, which unwind in the same way, are thrown in tests/cpp.
 */
#include "rig.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum way { BY_EXIT, BY_CANCEL, WAYS };

/* Its callback ends it. */
struct leaver {
	struct rig *rig;
	enum way way;
	pthread_t thread;
	atomic_bool inside;
	atomic_bool may_leave;
	bool came_back;
};

static struct leaver *leaver_of(const struct timerhub_event *event)
{
	return event->ptr;
}

static void leave(const struct timerhub_event *event)
{
	struct leaver *leaver = leaver_of(event);

	atomic_store(&leaver->inside, true);
	while (!atomic_load(&leaver->may_leave))
		(void)sched_yield();
	if (leaver->way == BY_EXIT)
		pthread_exit(NULL);
	thread_ends_here();
	for (;;)
		pause(); /* pause() is a cancellation point */
}

static void *dispatch(void *argument)
{
	struct leaver *leaver = argument;

	(void)timerhub_dispatch(leaver->rig->queue, 8);
	leaver->came_back = true;
	return NULL;
}

static void leaver_start(struct leaver *leaver, struct rig *rig, enum way way)
{
	*leaver = (struct leaver){ .rig = rig, .way = way };
	thread_start(&leaver->thread, dispatch, leaver);
}

static void leaver_wait_inside(struct leaver *leaver)
{
	while (!atomic_load(&leaver->inside))
		sleep_ns(50 * US);
}

static void leaver_leaves(struct leaver *leaver)
{
	atomic_store(&leaver->may_leave, true);
	if (leaver->way == BY_CANCEL)
		expect_eq(pthread_cancel(leaver->thread), 0);
}

static void leaver_is_gone(struct leaver *leaver)
{
	thread_join(leaver->thread);
	expect(!leaver->came_back);
}

/* With another event behind it, or as the last one (_i >= WAYS). */
TEST_LOOP(unwind_leaves_the_rest_of_the_queue, 60, 2 * WAYS)
{
	struct rig rig = rig_manual(2);
	bool is_last = _i >= WAYS;
	struct leaver leaver;
	timerhub_timer timer;

	timer = arm(rig.queue, SPEC(.expires_ns = 1, .ptr = &leaver, .fn = leave));
	if (!is_last)
		arm_at(rig.queue, 128, 9);
	advance(rig.hub, 128);
	leaver_start(&leaver, &rig, (enum way)(_i % WAYS));
	leaver_wait_inside(&leaver);
	leaver_leaves(&leaver);
	leaver_is_gone(&leaver);
	expect_eq(stats_of(rig.hub).delivered, 1);
	expect_eq(stats_of(rig.hub).live, !is_last);
	/* no callback of the timer runs any more */
	expect_eq(timerhub_cancel_sync(rig.hub, timer), -ENOENT);
	expect_eq(fd_readable(timerhub_queue_fd(rig.queue)), !is_last);
	if (!is_last)
		expect_eq(take_one(rig.queue).data, 9);
	expect_empty(rig.queue);
	rig_close(&rig);
}

struct canceller {
	struct rig *rig;
	timerhub_timer timer;
	pthread_t thread;
	atomic_int tid;
	atomic_bool back;
	int result;
};

static void *cancel_sync(void *argument)
{
	struct canceller *canceller = argument;

	atomic_store(&canceller->tid, (int)syscall(SYS_gettid));
	canceller->result = timerhub_cancel_sync(canceller->rig->hub, canceller->timer);
	atomic_store(&canceller->back, true);
	return NULL;
}

TEST_LOOP(unwind_ends_the_wait_for_the_callback, 60, WAYS)
{
	struct rig rig = rig_manual(2);
	struct leaver leaver;
	struct canceller canceller = { .rig = &rig };

	canceller.timer = arm(
		rig.queue, SPEC(.expires_ns = 1, .interval_ns = 6400, .ptr = &leaver, .fn = leave));
	advance(rig.hub, 128);
	leaver_start(&leaver, &rig, (enum way)_i);
	leaver_wait_inside(&leaver);
	thread_start(&canceller.thread, cancel_sync, &canceller);
	while (atomic_load(&canceller.tid) == 0)
		sleep_ns(50 * US);
	thread_blocks(atomic_load(&canceller.tid));
	expect(!atomic_load(&canceller.back));
	leaver_leaves(&leaver);
	thread_join(canceller.thread);
	expect_eq(canceller.result, 0);
	leaver_is_gone(&leaver);
	rig_close(&rig);
}

/* Threads that end inside callbacks use up none of the hub's cells for running callbacks. */
TEST(unwind_again_and_again_leaves_nothing, 240)
{
	struct rig rig = rig_manual(1);
	unsigned rounds = scaled(18000); /* more rounds than a hub has callback cells */

	for (unsigned i = 0; i < rounds; i++) {
		struct leaver leaver;
		timerhub_timer timer = arm(rig.queue, SPEC(.expires_ns = 1,
		                                           .flags = i % 2 == 0 ? TIMERHUB_KEEP : 0,
		                                           .ptr = &leaver, .fn = leave));

		advance(rig.hub, (i + 1) * 64);
		leaver = (struct leaver){ .rig = &rig, .way = BY_EXIT, .may_leave = true };
		thread_start(&leaver.thread, dispatch, &leaver);
		leaver_is_gone(&leaver);
		expect_eq(timerhub_cancel_sync(rig.hub, timer), i % 2 == 0 ? 0 : -ENOENT);
	}
	expect_eq(stats_of(rig.hub).delivered, rounds);
	expect_eq(stats_of(rig.hub).live, 0);
	rig_close(&rig);
}
