/* SPDX-License-Identifier: MIT */
/*
 * The textbook design: a 4-ary heap under a mutex, and a thread that sleeps on a condition variable
 * until the earliest deadline, with a timer slack of 1 ns. An arm wakes it only if its deadline is
 * earlier. The thread takes due timers in batches and calls back without the mutex. A delay queue
 * has no such thread: each consumer takes from the heap itself, one timer at a time.
 *
 * "heap-loop" is the heap of one event loop, without mutex and thread.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>

#include "clocks.h"
#include "heap4.h"
#include "subject_list.h"

#define HEAP_BATCH 64

static struct heap4 heap; /* under the mutex */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t earlier;                             /* the owner sleeps here */
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER; /* heap_run() waits here */
static bool (*awaited)(void);                              /* heap_run() waits for this; mutex */
static uint64_t asleep_until_ns;                           /* 0 while awake; under the mutex */
static struct subject_counts counts;                       /* under the mutex */
static bool has_owner;
static _Thread_local uint64_t cached_ns;

static void heap_sleep(uint64_t until_ns)
{
	struct timespec time = timespec_from_ns(until_ns);

	asleep_until_ns = until_ns;
	if (until_ns == UINT64_MAX)
		(void)pthread_cond_wait(&earlier, &mutex);
	else
		(void)pthread_cond_timedwait(&earlier, &mutex, &time);
	asleep_until_ns = 0;
	counts.owner_wakeups++;
}

static bool heap_never(void)
{
	return false;
}

/* Take at most `batch` due timers, call back, and sleep. Repeats until done() returns true. */
static void heap_serve(bool (*done)(void), uint32_t batch)
{
	uint32_t timers[HEAP_BATCH];

	(void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	(void)pthread_mutex_lock(&mutex);
	while (!done()) {
		uint32_t taken = heap4_take(&heap, now_ns(), timers, batch);

		if (taken > 0) {
			(void)pthread_mutex_unlock(&mutex);
			for (uint32_t i = 0; i < taken; i++)
				subject_expired(timers[i]);
			(void)pthread_mutex_lock(&mutex);
			if (awaited && awaited())
				(void)pthread_cond_signal(&finished);
		} else if (heap4_next_ns(&heap) > now_ns()) {
			heap_sleep(heap4_next_ns(&heap));
		}
	}
	(void)pthread_mutex_unlock(&mutex);
}

static void *heap_owner(void *argument)
{
	(void)argument;
	heap_serve(heap_never, HEAP_BATCH);
	return NULL;
}

static void heap_open(const struct subject_setup *setup)
{
	pthread_condattr_t attributes;
	pthread_t owner;

	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&earlier, &attributes);
	heap4_open(&heap, setup->timers + 1);
	has_owner = !setup->delay_queue;
	if (has_owner && pthread_create(&owner, NULL, heap_owner, NULL) != 0)
		subject_fail("pthread_create", EAGAIN);
}

static void heap_tick(void)
{
	cached_ns = now_ns();
}

static int heap_arm(uint32_t timer, uint64_t delay_ns)
{
	uint64_t deadline_ns = cached_ns + delay_ns;
	bool wake;

	(void)pthread_mutex_lock(&mutex);
	heap4_put(&heap, timer, deadline_ns);
	wake = deadline_ns < asleep_until_ns;
	if (wake)
		asleep_until_ns = deadline_ns; /* the owner is already woken for this deadline */
	counts.submit_wakes += wake;
	(void)pthread_mutex_unlock(&mutex);
	if (wake)
		(void)pthread_cond_signal(&earlier);
	return 0;
}

static void heap_cancel(uint32_t timer)
{
	(void)pthread_mutex_lock(&mutex);
	heap4_remove(&heap, timer);
	(void)pthread_mutex_unlock(&mutex);
}

/* The owner makes the callbacks itself, so a consumer only waits. */
static void heap_run(bool (*done)(void))
{
	if (!has_owner) {
		heap_serve(done, 1);
		return;
	}
	(void)pthread_mutex_lock(&mutex);
	awaited = done;
	while (!done())
		(void)pthread_cond_wait(&finished, &mutex);
	awaited = NULL;
	(void)pthread_mutex_unlock(&mutex);
}

static void heap_counts(struct subject_counts *ret_counts)
{
	(void)pthread_mutex_lock(&mutex);
	*ret_counts = counts;
	(void)pthread_mutex_unlock(&mutex);
}

const struct subject subject_heap = {
	.name = "heap",
	.how = "a 4-ary heap under a mutex with a sleeping thread, woken only if earlier",
	.can = CAN_REARM | CAN_CANCEL | CAN_EXPIRE | CAN_CROSS | CAN_ANY_THREAD | CAN_PUSH_TAKE |
	       CAN_BE_LATE | CAN_COUNT_WAKES | CAN_SERVE_ITSELF | HAS_OWNER | CAN_BATCH | CAN_SERVE,
	.open = heap_open,
	.tick = heap_tick,
	.arm = heap_arm,
	.rearm = heap_arm,
	.cancel = heap_cancel,
	.run = heap_run,
	.counts = heap_counts,
};

/* ---- one event loop's heap ---- */

static void heap_loop_open(const struct subject_setup *setup)
{
	heap4_open(&heap, setup->timers + 1);
	(void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
}

static int heap_loop_arm(uint32_t timer, uint64_t delay_ns)
{
	heap4_put(&heap, timer, cached_ns + delay_ns);
	return 0;
}

static void heap_loop_cancel(uint32_t timer)
{
	heap4_remove(&heap, timer);
}

static void heap_loop_run(bool (*done)(void))
{
	uint32_t timers[HEAP_BATCH];

	while (!done()) {
		uint32_t taken = heap4_take(&heap, now_ns(), timers, HEAP_BATCH);
		struct timespec until = timespec_from_ns(heap4_next_ns(&heap));

		for (uint32_t i = 0; i < taken; i++)
			subject_expired(timers[i]);
		if (taken == 0)
			(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	}
}

const struct subject subject_heap_loop = {
	.name = "heap-loop",
	.how = "a 4-ary heap in its own loop's thread",
	.can = CAN_REARM | CAN_CANCEL | CAN_EXPIRE | CAN_SERVE | LOOP_EACH | CAN_HOLD_RECORDS,
	.open = heap_loop_open,
	.tick = heap_tick,
	.arm = heap_loop_arm,
	.rearm = heap_loop_arm,
	.cancel = heap_loop_cancel,
	.run = heap_loop_run,
};
