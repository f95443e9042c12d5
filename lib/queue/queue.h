/* SPDX-License-Identifier: MIT */
/*
 * A queue: the outbox in which the events of expired timers wait, and the notifier that tells its
 * consumers. The fields are arranged so that most cache lines have one kind of writer: the owner,
 * or the consumers, or the threads that arm timers.
 *
 * queue_alarm() stores UINT64_MAX in the uint64_t at event->ptr, which means that the timer is not
 * set. Because such a timer is the library's own, timerhub_each() leaves it out.
 */
#ifndef TIMERHUB_QUEUE_H
#define TIMERHUB_QUEUE_H

#include "board/counter_board.h"
#include "queue/notifier.h"
#include "queue/outbox.h"

/* How many unpublished events of one queue make the owner publish the events of all queues. */
#ifndef PUBLISHER_BATCH
#define PUBLISHER_BATCH 64
#endif

struct timerhub;

/*
 * Takes the place of a closed queue in the hub's table until the owner's present round of work has
 * ended, because the owner may still use the queue until then.
 */
#define QUEUE_GONE ((void *)(uintptr_t)1)

struct timerhub_queue {
	/*
	 * The next fields do not change after the queue, or the loop to which it belongs, has been
	 * opened.
	 */
	struct timerhub *hub;
	struct board_queue *counts; /* its counters on the hub's board, which outlive the queue */
	uint32_t index;             /* in the hub's table, and in the records of its timers */
	/*
	 * How long a callback must run to be slow. UINT64_MAX: none is ever slow. 0: do not
	 * measure, because nobody can observe the hub or the loop.
	 */
	uint64_t slow_ns;
	struct board *hub_board;  /* the hub's counters, or NULL if it is not observable */
	struct board *loop_board; /* the observable loop's counters, or NULL if there is none */
	/*
	 * Points to a struct board_cell, in which a thread shows what it is doing. A thread that
	 * dispatches the queue tries this cell first. If it is another thread's cell, the thread
	 * searches for its own. Never NULL.
	 */
	atomic_ptr cell;
	struct outbox outbox;
	struct notifier notifier;

	/*
	 * Only the hub's owner thread uses these three fields. They are about the queue's
	 * unpublished events.
	 */
	_Alignas(CACHE_LINE_BYTES) struct timerhub_queue *next_unpublished;
	unsigned unpublished; /* how many events are unpublished; 0: not in the list */
	uint64_t deadlines_ns[PUBLISHER_BATCH]; /* the deadlines of these events */

	_Alignas(CACHE_LINE_BYTES) atomic_u32 inside; /* how many threads are in timerhub_wait() */
	atomic_u32 stopped;                           /* 1: waits no longer block */
	atomic_u32 closing;                           /* 1: waits must return at once */
};

/*
 * A hub wakes a loop by a timer. This is the timer's callback, which notes that the timer has
 * expired.
 */
void queue_alarm(const struct timerhub_event *event);

/*
 * Makes a loop's queue observable: the thread that dispatches the queue will show in `cell` what it
 * is doing, and count slow callbacks on `loop_board`. Call this before the first dispatch.
 */
void queue_watch(struct timerhub_queue *queue, struct board *loop_board, struct board_cell *cell);

/*
 * Tells whether the outbox has handles of expired timers. There may be no event to take even then,
 * because these timers may have been cancelled or re-armed since they expired.
 */
static inline bool queue_holds_events(const struct timerhub_queue *queue)
{
	return outbox_count(&queue->outbox) > 0;
}

#endif
