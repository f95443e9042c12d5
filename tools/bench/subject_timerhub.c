/* SPDX-License-Identifier: MIT */
/*
 * Measures timerhub, used as its header recommends, by any thread. Deadlines count from the time
 * that the caller's loop has cached (TIMERHUB_ABSOLUTE). One consumer waits in timerhub_wait, or in
 * epoll on the queue's fd. The caller keeps an array of handles, as in subject_floor.c.
 *
 * "-many" passes a batch of timers in one call, "-spin" wakes 60 us early and spins, "-huge" opens
 * the hub with TIMERHUB_HUGE_PAGES, "-fifo" runs owner and consumer at SCHED_FIFO.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "clocks.h"
#include "embedding_objects.h"
#include "timerhub.h"

#define EVENTS_MAX 256

static struct timerhub *hub;
static struct timerhub_queue *queue;
static int epoll_fd;

static timerhub_timer *handle_of(uint32_t timer)
{
	return records_timer(timer);
}

static void timerhub_start(const struct subject_setup *setup, uint32_t flags, uint64_t spin_ns)
{
	struct timerhub_config config = {
		.size = sizeof(config),
		.flags = flags,
		.timers_max = setup->timers + setup->spare + 1,
		.spin_ns = spin_ns,
	};
	int result = timerhub_open(&hub, &config);

	if (result == 0)
		result = timerhub_queue_open(hub, &queue, NULL);
	if (result < 0)
		subject_fail("timerhub_open", -result);
	epoll_fd = setup->epoll ? subject_epoll(timerhub_queue_fd(queue)) : -1;
	if (!setup->bare)
		records_open(setup, sizeof(timerhub_timer));
}

static void subject_open(const struct subject_setup *setup)
{
	timerhub_start(setup, 0, 0);
}

static void subject_open_spin(const struct subject_setup *setup)
{
	timerhub_start(setup, 0, 60 * NS_PER_US);
}

static void subject_open_huge(const struct subject_setup *setup)
{
	timerhub_start(setup, TIMERHUB_HUGE_PAGES, 0);
}

static void subject_open_fifo(const struct subject_setup *setup)
{
	timerhub_start(setup, 0, 0);
	subject_fifo(timerhub_owner_tid(hub));
	subject_fifo(0);
}

static void subject_close(void)
{
	if (epoll_fd >= 0)
		(void)close(epoll_fd);
	timerhub_queue_close(queue);
	timerhub_close(hub);
}

static void subject_tick(void)
{
	subject_cached_ns = timerhub_now(hub);
}

static int subject_arm(uint32_t timer, uint64_t delay_ns)
{
	struct timerhub_spec spec = {
		.size = sizeof(spec),
		.flags = TIMERHUB_ABSOLUTE,
		.expires_ns = subject_cached_ns + delay_ns,
		.data = timer,
	};

	return timerhub_arm(queue, &spec, handle_of(timer));
}

static int subject_rearm(uint32_t timer, uint64_t delay_ns)
{
	return timerhub_rearm(hub, *handle_of(timer), subject_cached_ns + delay_ns,
	                      TIMERHUB_ABSOLUTE);
}

static void subject_cancel(uint32_t timer)
{
	(void)timerhub_cancel(hub, *handle_of(timer)); /* -ENOENT if the timer has expired */
}

static int subject_rearm_many(const uint32_t *timers, unsigned count, uint64_t delay_ns)
{
	timerhub_timer batch[BATCH_MAX];

	for (unsigned i = 0; i < count; i++)
		batch[i] = *handle_of(timers[i]);
	return timerhub_rearm_many(hub, batch, count, subject_cached_ns + delay_ns,
	                           TIMERHUB_ABSOLUTE);
}

static int subject_arm_many(const uint32_t *timers, const uint64_t *delays_ns, unsigned count)
{
	static _Thread_local struct timerhub_spec specs[BATCH_MAX];
	timerhub_timer batch[BATCH_MAX];
	int result;

	for (unsigned i = 0; i < count; i++)
		specs[i] = (struct timerhub_spec){
			.size = sizeof(specs[i]),
			.flags = TIMERHUB_ABSOLUTE,
			.expires_ns = subject_cached_ns + delays_ns[i],
			.data = timers[i],
		};
	result = timerhub_arm_many(queue, specs, count, batch);
	if (result >= 0 && (unsigned)result < count)
		return -EAGAIN;
	for (unsigned i = 0; i < count; i++)
		*handle_of(timers[i]) = batch[i];
	return result;
}

static void subject_cancel_many(const uint32_t *timers, unsigned count)
{
	timerhub_timer batch[BATCH_MAX];

	for (unsigned i = 0; i < count; i++)
		batch[i] = *handle_of(timers[i]);
	(void)timerhub_cancel_many(hub, batch, count);
}

static void subject_run(bool (*done)(void))
{
	struct timerhub_event events[EVENTS_MAX];
	struct epoll_event ready;
	int count;

	while (!done()) {
		if (epoll_fd >= 0 && epoll_wait(epoll_fd, &ready, 1, -1) < 0 && errno != EINTR)
			subject_fail("epoll_wait", errno);
		count = epoll_fd >= 0 ? timerhub_drain(queue, events, EVENTS_MAX)
		                      : timerhub_wait(queue, events, EVENTS_MAX, UINT64_MAX);
		for (int i = 0; i < count; i++)
			subject_expired((uint32_t)events[i].data);
	}
}

static void subject_counts(struct subject_counts *ret_counts)
{
	struct timerhub_stats stats;

	(void)timerhub_stats(hub, &stats);
	*ret_counts = (struct subject_counts){
		.owner_wakeups = stats.owner_wakeups,
		.submit_wakes = stats.submit_wakes,
		.inbox_max = stats.inbox_max,
	};
}

#define HUB_CALLS(opens)                                                                           \
	CALLS(opens, subject_tick, subject_arm, subject_rearm, subject_cancel, subject_run),       \
		.close = subject_close, .handle_bytes = sizeof(timerhub_timer),                    \
		.counts = subject_counts

SUBJECT(timerhub, "timerhub",
        "absolute deadlines from a cached now, one consumer in timerhub_wait or epoll",
        ALL_CALLS | CAN_CROSS | CAN_ANY_THREAD | CAN_PUSH_TAKE | CAN_BE_LATE | CAN_COUNT_WAKES |
                CAN_OPEN_LARGE | HAS_OWNER | CAN_BATCH | CAN_SERVE,
        HUB_CALLS(subject_open))

SUBJECT(timerhub_many, "timerhub-many",
        "timerhub, with a batch of timers in one rearm_many, cancel_many, arm_many",
        CAN_REARM | CAN_CANCEL | CAN_CROSS | CAN_ANY_THREAD | HAS_OWNER | CAN_BATCH | CAN_SERVE,
        .batches = true, HUB_CALLS(subject_open), .rearm_many = subject_rearm_many,
        .arm_many = subject_arm_many, .cancel_many = subject_cancel_many)

SUBJECT(timerhub_spin, "timerhub-spin", "timerhub with spin_ns of 60 us", CAN_BE_LATE | HAS_OWNER,
        HUB_CALLS(subject_open_spin))

SUBJECT(timerhub_huge, "timerhub-huge", "timerhub with transparent huge pages for its memory",
        ALL_CALLS | CAN_ANY_THREAD | HAS_OWNER, HUB_CALLS(subject_open_huge))

SUBJECT(timerhub_fifo, "timerhub-fifo", "timerhub, owner and consumer at SCHED_FIFO",
        CAN_BE_LATE | HAS_OWNER, .there = subject_fifo_there, HUB_CALLS(subject_open_fifo))
