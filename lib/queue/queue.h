/* SPDX-License-Identifier: MIT */
/*
 * A queue: the outbox in which the events of expired timers wait, and the notifier that tells its
 * consumers. The fields are arranged so that most cache lines have one kind of writer: the owner,
 * or the consumers, or the threads that arm timers.
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
 * Replaces a closed queue in the hub's table while the owner's present pass may still use the
 * queue.
 */
#define QUEUE_GONE ((void *)(uintptr_t)1)

struct timerhub_queue {
	/* These fields do not change once the queue, or its loop, has been opened. */
	struct timerhub *hub;
	struct board_queue *counts; /* its counters on the hub's board, which outlive the queue */
	uint32_t index;             /* in the hub's table, and in the records of its timers */
	/* How long a slow callback runs at least. UINT64_MAX: none is slow. 0: do not measure. */
	uint64_t slow_ns;
	struct board *hub_board;  /* the hub's counters, or NULL if it is not observable */
	struct board *loop_board; /* the observable loop's counters, or NULL if there is none */
	/* The cell of the thread that dispatched last (board/thread_cell.h). Never NULL. */
	atomic_ptr cell;
	struct outbox outbox;
	struct notifier notifier;

	/*
	 * Only the owner uses these fields. This one links the queues that have unpublished events.
	 */
	_Alignas(CACHE_LINE_BYTES) struct timerhub_queue *next_unpublished;
	unsigned unpublished; /* how many events are unpublished; 0: not in the list */
	uint64_t deadlines_ns[PUBLISHER_BATCH]; /* the deadlines of these events */

	_Alignas(CACHE_LINE_BYTES) atomic_u32 inside; /* how many threads are in timerhub_wait() */
	atomic_u32 stopped;                           /* 1: waits no longer block */
	atomic_u32 closing;                           /* 1: waits must return at once */
};

/* The callback of the timer that wakes a loop. Stores UINT64_MAX, "not set", at event->ptr. */
void queue_alarm(const struct timerhub_event *event);

/* Makes dispatching threads show in `cell` what they do. Call it before a loop's first dispatch. */
void queue_watch(struct timerhub_queue *queue, struct board *loop_board, struct board_cell *cell);

/* Tells whether the outbox has handles. Their timers may have been cancelled or re-armed since. */
static inline bool queue_holds_events(const struct timerhub_queue *queue)
{
	return outbox_count(&queue->outbox) > 0;
}

#endif
