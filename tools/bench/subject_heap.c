/* SPDX-License-Identifier: MIT */
/*
 * "heap" is the textbook design: a 4-ary heap under a mutex, whose owner sleeps on a condition
 * variable until the earliest deadline. Only an arm with an earlier one wakes it. It takes due
 * timers in batches and calls back without the mutex. "heap-loop" is the heap of one event loop,
 * which waits in epoll for one timerfd.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "subject.h"

#define HEAP_BATCH 64
#define HEAP4_ARITY 4

/* ---- the heap, by deadline ---- */

struct heap4_entry {
	uint64_t deadline_ns; /* here too, so that a comparison reads no other memory */
	uint32_t timer;
};

struct heap4 {
	struct heap4_entry *entries;
	uint32_t *places; /* for each timer: the index of its entry, or UINT32_MAX */
	uint32_t count;
};

static void heap4_open(struct heap4 *heap, uint32_t timers)
{
	heap->entries = subject_allocate(timers, sizeof(*heap->entries));
	heap->places = subject_allocate(timers, sizeof(*heap->places));
	heap->count = 0;
	memset(heap->places, 0xff, (size_t)timers * sizeof(*heap->places));
}

static void heap4_set(struct heap4 *heap, uint32_t place, struct heap4_entry entry)
{
	heap->entries[place] = entry;
	heap->places[entry.timer] = place;
}

static uint32_t heap4_least_child(const struct heap4 *heap, uint32_t place)
{
	uint32_t first = place * HEAP4_ARITY + 1;
	uint32_t least = first;

	for (uint32_t i = first + 1; i < first + HEAP4_ARITY && i < heap->count; i++)
		if (heap->entries[i].deadline_ns < heap->entries[least].deadline_ns)
			least = i;
	return least;
}

/* Stores an entry at a free place, or where it belongs above or below this place. */
static void heap4_sift(struct heap4 *heap, uint32_t place, struct heap4_entry entry)
{
	const uint32_t from = place;

	while (place > 0) {
		uint32_t parent = (place - 1) / HEAP4_ARITY;

		if (heap->entries[parent].deadline_ns <= entry.deadline_ns)
			break;
		heap4_set(heap, place, heap->entries[parent]);
		place = parent;
	}
	while (place >= from && place * HEAP4_ARITY + 1 < heap->count) {
		uint32_t child = heap4_least_child(heap, place);

		if (entry.deadline_ns <= heap->entries[child].deadline_ns)
			break;
		heap4_set(heap, place, heap->entries[child]);
		place = child;
	}
	heap4_set(heap, place, entry);
}

/* Inserts a timer, or moves it to the new deadline. */
static void heap4_put(struct heap4 *heap, uint32_t timer, uint64_t deadline_ns)
{
	struct heap4_entry entry = { deadline_ns, timer };
	uint32_t place = heap->places[timer];

	heap4_sift(heap, place == UINT32_MAX ? heap->count++ : place, entry);
}

static void heap4_remove(struct heap4 *heap, uint32_t timer)
{
	uint32_t place = heap->places[timer];
	struct heap4_entry last;

	if (place == UINT32_MAX)
		return;
	heap->places[timer] = UINT32_MAX;
	last = heap->entries[--heap->count];
	if (last.timer != timer)
		heap4_sift(heap, place, last);
}

/* Returns the earliest deadline, or UINT64_MAX if the heap is empty. */
static uint64_t heap4_next_ns(const struct heap4 *heap)
{
	return heap->count > 0 ? heap->entries[0].deadline_ns : UINT64_MAX;
}

/* Removes up to `max` due timers, in the order of their deadlines, and returns their number. */
static uint32_t heap4_take(struct heap4 *heap, uint64_t now_ns, uint32_t *timers, uint32_t max)
{
	uint32_t taken = 0;

	while (taken < max && heap4_next_ns(heap) <= now_ns) {
		timers[taken] = heap->entries[0].timer;
		heap4_remove(heap, timers[taken++]);
	}
	return taken;
}

/* ---- a thread that keeps it ---- */

static struct heap4 heap; /* under the mutex, in "heap" */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t earlier;   /* the owner sleeps on this */
static uint64_t asleep_until_ns; /* end of the owner's sleep, or 0 while it is awake */

static void heap_sleep(uint64_t until_ns)
{
	struct timespec time = timespec_of(until_ns);

	asleep_until_ns = until_ns;
	if (until_ns == UINT64_MAX)
		(void)pthread_cond_wait(&earlier, &mutex);
	else
		(void)pthread_cond_timedwait(&earlier, &mutex, &time);
	asleep_until_ns = 0;
}

static void heap_run(bool (*done)(void))
{
	uint32_t timers[HEAP_BATCH];

	(void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	(void)pthread_mutex_lock(&mutex);
	while (!done()) {
		uint32_t taken = heap4_take(&heap, clock_monotonic_ns(), timers, HEAP_BATCH);

		if (taken > 0) {
			(void)pthread_mutex_unlock(&mutex);
			for (uint32_t i = 0; i < taken; i++)
				subject_expired(timers[i]);
			(void)pthread_mutex_lock(&mutex);
		} else if (heap4_next_ns(&heap) > clock_monotonic_ns()) {
			heap_sleep(heap4_next_ns(&heap));
		}
	}
	(void)pthread_mutex_unlock(&mutex);
}

static void heap_open(const struct subject_setup *setup)
{
	pthread_condattr_t attributes;

	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&earlier, &attributes);
	heap4_open(&heap, setup->timers + 1);
}

static int heap_arm(uint32_t timer, uint64_t delay_ns)
{
	uint64_t deadline_ns = subject_cached_ns + delay_ns;
	bool wake;

	(void)pthread_mutex_lock(&mutex);
	heap4_put(&heap, timer, deadline_ns);
	wake = deadline_ns < asleep_until_ns;
	if (wake)
		asleep_until_ns = deadline_ns; /* the owner is woken for this deadline */
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

SUBJECT(heap, "heap", TIMERS | CROSS | OWNER | SERVER,
        CALLS(heap_open, subject_cache_now, heap_arm, heap_arm, heap_cancel, heap_run))

/* ---- one event loop's heap ---- */

static int timer_fd, epoll_fd;

static void loop_open(const struct subject_setup *setup)
{
	struct epoll_event event = { .events = EPOLLIN };

	heap4_open(&heap, setup->timers + 1);
	timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (timer_fd < 0 || epoll_fd < 0 ||
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timer_fd, &event) < 0)
		subject_fail("a timerfd in epoll", errno);
}

static int loop_arm(uint32_t timer, uint64_t delay_ns)
{
	heap4_put(&heap, timer, subject_cached_ns + delay_ns);
	return 0;
}

static void loop_cancel(uint32_t timer)
{
	heap4_remove(&heap, timer);
}

static uint32_t loop_deliver(void)
{
	uint32_t timers[HEAP_BATCH];
	uint32_t taken = heap4_take(&heap, clock_monotonic_ns(), timers, HEAP_BATCH);

	for (uint32_t i = 0; i < taken; i++)
		subject_expired(timers[i]);
	return taken;
}

static void loop_wait(void)
{
	struct itimerspec next = { .it_value = timespec_of(heap4_next_ns(&heap)) };
	struct epoll_event event;
	uint64_t count;

	if (timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &next, NULL) < 0)
		subject_fail("timerfd_settime", errno);
	if (epoll_wait(epoll_fd, &event, 1, -1) != 1 ||
	    read(timer_fd, &count, sizeof(count)) != sizeof(count))
		subject_fail("epoll_wait", errno);
}

static void loop_run(bool (*done)(void))
{
	while (!done())
		if (loop_deliver() == 0)
			loop_wait();
}

SUBJECT(heap_loop, "heap-loop", TIMERS | SERVER,
        CALLS(loop_open, subject_cache_now, loop_arm, loop_arm, loop_cancel, loop_run))
