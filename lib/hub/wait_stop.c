/* SPDX-License-Identifier: MIT */
/*
 * Implements timerhub_wait(), which blocks until there are events, and timerhub_queue_stop(). A
 * wait ends with an event, after its time, by a stop, or by the close of the queue. notifier.c
 * explains why no wake-up is lost.
 *
 * queue_wait() loads `stopped` before it checks whether the outbox is empty. In the other order, an
 * event could come after the check and before the stop, and the wait would return without it.
 */
#include <errno.h>

#include "base/futex.h"
#include "base/test_point.h"
#include "hub/hub.h"

/*
 * How long a waiter on a stopped queue sleeps before it checks whether the owner has finished
 * compacting the queue.
 */
#define STOPPED_NAP_NS 50000

/*
 * Returns true if the queue is being closed. Relaxed is enough, because the futex word changes
 * after `closing`: a waiter that has not seen `closing` does not block.
 */
static bool queue_closing(const struct timerhub_queue *queue)
{
	return u32_load_relaxed(&queue->closing) != 0;
}

/* Returns how many ns are left until `until_ns`. UINT64_MAX means that there is no limit. */
static uint64_t left_ns(uint64_t until_ns)
{
	uint64_t now_ns;

	if (until_ns == UINT64_MAX)
		return UINT64_MAX;
	now_ns = clock_monotonic_ns();
	return now_ns < until_ns ? until_ns - now_ns : 0;
}

static bool queue_stopped(const struct timerhub_queue *queue)
{
	return u32_load_seq_cst(&queue->stopped) != 0;
}

/*
 * Blocks until there may be an event or another reason to return. While the owner compacts a
 * stopped queue, this thread sleeps only briefly, because the end of the compaction may wake
 * nobody.
 */
static void queue_block(struct timerhub_queue *queue, uint64_t timeout_ns)
{
	uint32_t ticket = notifier_wait_enter(&queue->notifier);

	test_point(TEST_POINT_WAIT_BEFORE_SLEEP);
	if (outbox_count(&queue->outbox) == 0 && !queue_closing(queue) && hub_alive(queue->hub) &&
	    ticket != 0) {
		if (!queue_stopped(queue))
			futex_wait(queue->notifier.ticket, ticket, timeout_ns);
		else if (!outbox_exhausted(&queue->outbox))
			futex_wait(queue->notifier.ticket, ticket, STOPPED_NAP_NS);
	}
	notifier_wait_leave(&queue->notifier);
}

static int queue_wait(struct timerhub_queue *queue, struct timerhub_event *events, unsigned max,
                      uint64_t until_ns)
{
	for (;;) {
		uint64_t timeout_ns;
		unsigned count;
		bool stopped;

		/* A close comes first, even if there are events. */
		if (queue_closing(queue))
			return -ESHUTDOWN;
		count = queue_take(queue, events, max);
		if (count > 0)
			return (int)count;
		if (!hub_alive(queue->hub))
			return -EOWNERDEAD;
		test_point(TEST_POINT_WAIT_FOUND_NOTHING);
		stopped = queue_stopped(queue);
		if (stopped && outbox_exhausted(&queue->outbox))
			return -ESHUTDOWN;
		timeout_ns = left_ns(until_ns);
		if (timeout_ns == 0 && !stopped)
			return 0;
		queue_block(queue, timeout_ns);
	}
}

int timerhub_wait(struct timerhub_queue *queue, struct timerhub_event *events, unsigned max,
                  uint64_t timeout_ns)
{
	uint64_t until_ns;
	int result;

	if (!queue || max == 0)
		return -EINVAL;
	/*
	 * Count this thread before it uses the hub, because a close waits until no counted thread
	 * is left.
	 */
	(void)u32_fetch_add_seq_cst(&queue->inside, 1);
	result = u32_load_seq_cst(&queue->closing) != 0 ? -ESHUTDOWN
	                                                : queue_check(queue, events, max);
	if (result == 0) {
		until_ns = timeout_ns == UINT64_MAX
		                   ? UINT64_MAX
		                   : u64_add_saturating(clock_monotonic_ns(), timeout_ns);
		result = queue_result(queue, queue_wait(queue, events, max, until_ns));
	}
	test_point(TEST_POINT_WAIT_HAS_RESULT);
	/* Subtract 1. Release, because a close that loads 0 here frees what this wait has used. */
	(void)u32_fetch_add_release(&queue->inside, UINT32_MAX);
	return result;
}

void timerhub_queue_stop(struct timerhub_queue *queue)
{
	if (!queue || !hub_alive(queue->hub))
		return;
	u32_store_seq_cst(&queue->stopped, 1);
	test_point(TEST_POINT_STOP_HALFWAY);
	notifier_wake(&queue->notifier, UINT32_MAX);
}
