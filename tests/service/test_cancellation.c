/* SPDX-License-Identifier: MIT */
/*
 * No call is a cancellation point: a thread with a pending pthread_cancel() makes all calls, with
 * success and failure, ends only at a point of its own, and leaks nothing. Asynchronous
 * cancellation is not supported.
 */
#include "rig.h"

#include <stdatomic.h>

/* calls that have returned, of the thread that the test cancels */
static atomic_uint came;
static unsigned calls_made;

/* Only during a call, because the test's own code may contain cancellation points. */
#define CALL(expression)                                                                           \
	do {                                                                                       \
		(void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);                         \
		(void)(expression);                                                                \
		(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);                        \
		atomic_store(&came, ++calls_made);                                                 \
	} while (0)

/*
 * At a cancellation point; in a sanitized build by a return, since a sanitizer takes an unwound
 * stack for a fault.
 */
static void *end_cancelled(void)
{
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	if (sanitized())
		return PTHREAD_CANCELED;
	(void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	pthread_testcancel();
	return NULL;
}

static int no_more(const struct timerhub_event *timer, uint64_t interval_ns, void *context)
{
	(void)timer;
	(void)interval_ns;
	(void)context;
	return 0;
}

static void call_timers(struct rig *rig)
{
	struct timerhub_spec specs[2] = { SPEC(.expires_ns = HOUR), SPEC(.fn = ignore_event) };
	struct timerhub_event events[4];
	timerhub_timer timers[2], timer;
	struct timerhub_stats stats;
	uint64_t left_ns;

	CALL(timerhub_arm(rig->queue, &specs[0], &timer));
	CALL(timerhub_rearm(rig->hub, timer, 2 * HOUR, 0));
	CALL(timerhub_rearm(rig->hub, timer, 0, 0)); /* the re-arm wakes the owner */
	CALL(timerhub_remaining(rig->hub, timer, &left_ns));
	CALL(timerhub_cancel(rig->hub, timer));
	CALL(timerhub_cancel_sync(rig->hub, timer));
	CALL(timerhub_arm_many(rig->queue, specs, 2, timers));
	CALL(timerhub_wait(rig->queue, events, 1, ARRIVES));
	CALL(timerhub_cancel_many(rig->hub, timers, 2));
	CALL(timerhub_after(rig->queue, 0, 0, NULL));
	CALL(timerhub_call(rig->queue, 0, ignore_event, NULL, NULL));
	CALL(timerhub_wait(rig->queue, events, 4, ARRIVES));
	CALL(timerhub_wait(rig->queue, events, 4, MS)); /* the wait blocks until its timeout */
	CALL(timerhub_drain(rig->queue, events, 4));
	CALL(timerhub_dispatch(rig->queue, 4));
	CALL(timerhub_now(rig->hub));
	CALL(timerhub_queue_fd(rig->queue));
	CALL(timerhub_stats(rig->hub, &stats));
	CALL(timerhub_rearm_many(rig->hub, timers, 2, HOUR, 0));
	CALL(timerhub_each(rig->hub, no_more, NULL));
	CALL(timerhub_owner_tid(rig->hub));
	CALL(timerhub_queue_hub(rig->queue));
	CALL(timerhub_queue_stop(rig->queue));
	/* the queue is stopped, so the wait returns at once */
	CALL(timerhub_wait(rig->queue, events, 4, ARRIVES));
}

/* Opens a hub, makes calls on it while this thread has a pending cancellation, and closes it. */
static void call_hub(uint32_t flags, uint32_t clock)
{
	struct timerhub_config config = { .size = sizeof(config),
		                          .flags = flags,
		                          .clock = clock,
		                          .sleeper = flags & TIMERHUB_MANUAL ? 0 : sleeper_asked(),
		                          .timers_max = 64 };
	struct timerhub_queue *other = NULL;
	struct rig rig = { NULL, NULL };
	uint64_t next_ns;

	CALL(hub_open(&rig.hub, &config));
	CALL(timerhub_queue_open(rig.hub, &rig.queue, NULL));
	CALL(timerhub_queue_open(rig.hub, &other, NULL));
	if (flags & TIMERHUB_MANUAL) {
		CALL(timerhub_after(rig.queue, 0, 0, NULL));
		CALL(timerhub_advance(rig.hub, 1, &next_ns));
		CALL(timerhub_wake_fd(rig.hub));
	} else {
		call_timers(&rig);
	}
	CALL(timerhub_queue_close(other));
	CALL(timerhub_close(rig.hub)); /* the close of the hub also closes its queue */
}

/* The open fails halfway. */
static void call_in_vain(void)
{
	struct timerhub_config config = { .size = sizeof(config),
		                          .flags = TIMERHUB_OBSERVABLE,
		                          .clock = TIMERHUB_CLOCK_REALTIME,
		                          .timers_max = 64 };
	struct timerhub *hub = NULL;

	for (unsigned left = 0; left < 4; left++) {
		rlim_t before = process_limit_fds(process_fd_count() + left);

		CALL(timerhub_open(&hub, &config));
		(void)process_limit_fds(before);
		CALL(timerhub_close(hub));
		hub = NULL;
	}
}

static void *call_everything(void *arg)
{
	(void)arg;
	calls_made = 0;
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	/* stays pending until end_cancelled(), unless a call is a cancellation point */
	expect_eq(pthread_cancel(pthread_self()), 0);
	call_hub(0, TIMERHUB_CLOCK_MONOTONIC);
	call_hub(TIMERHUB_OBSERVABLE, TIMERHUB_CLOCK_BOOTTIME);
	call_hub(0, TIMERHUB_CLOCK_REALTIME);
	call_hub(TIMERHUB_MANUAL, TIMERHUB_CLOCK_MONOTONIC);
	call_in_vain();
	atomic_store(&came, UINT32_MAX);
	return end_cancelled();
}

TEST(cancellation_comes_in_no_call, 60)
{
	unsigned fds = process_fd_count();
	unsigned threads = process_threads_at_rest();
	pthread_t thread;
	void *result;
	unsigned last;

	thread_start(&thread, call_everything, NULL);
	expect_eq(pthread_join(thread, &result), 0);
	/* UINT32_MAX if no call has ended the thread, else the number of calls that returned */
	last = atomic_load(&came);
	expect_eq(last, UINT32_MAX);
	expect(result == PTHREAD_CANCELED);
	expect_eq(process_fd_count(), fds);
	process_settles_at_threads(threads);
}
