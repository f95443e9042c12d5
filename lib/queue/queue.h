/* SPDX-License-Identifier: MIT */
/*
 * A queue: the outbox in which its events wait, and the notifier that tells its consumers. The
 * fields are arranged so that most cache lines have one kind of writer, which is the owner, or the
 * consumers, or the callers.
 */
#ifndef TIMERHUB_QUEUE_H
#define TIMERHUB_QUEUE_H

#include "base/counter_board.h"
#include "queue/notifier.h"
#include "queue/outbox.h"

/* When a queue has so many unpublished events, the events of all queues are published. */
#ifndef PUBLISHER_BATCH
#define PUBLISHER_BATCH 64
#endif

struct timerhub;

/* In the hub's table of queues: this one is closed, but the owner may still use it in this pass. */
#define QUEUE_GONE ((void *)(uintptr_t)1)

struct timerhub_queue {
	/* These are fixed when the queue, or its loop, is opened. */
	struct timerhub *hub;
	struct board_queue *counts; /* its counters on the hub's board, which outlive the queue */
	uint32_t index;             /* in the hub's table, and in the records of its timers */
	/*
	 * From which duration on a callback is slow for the hub or the loop; UINT64_MAX: never; 0:
	 * neither is observable, and dispatches record nothing.
	 */
	uint64_t slow_ns;
	struct board *hub_board;  /* the observable hub's; NULL: the hub is not observable */
	struct board *loop_board; /* that of the observable loop to which it belongs, or NULL */
	/*
	 * The cell of an observable loop, or of a thread that has dispatched the queue, so that a
	 * queue with one consumer finds it at once. Never NULL.
	 */
	atomic_ptr cell;
	struct outbox outbox;
	struct notifier notifier;

	/*
	 * What the owner alone uses: the publisher's list, and the events that it has not told yet.
	 */
	_Alignas(CACHE_LINE_BYTES) struct timerhub_queue *next_unpublished;
	unsigned unpublished;                   /* how many; 0: the queue is not in the list */
	uint64_t deadlines_ns[PUBLISHER_BATCH]; /* the deadlines of these events */

	_Alignas(CACHE_LINE_BYTES) atomic_u32 interrupts; /* how often waits were interrupted */
	atomic_u32 inside;  /* how many threads are in timerhub_wait() */
	atomic_u32 stopped; /* 1: waits no longer block */
	atomic_u32 closing; /* 1: waits must return at once */
};

/*
 * The callback of a loop's alarm, which is the only timer that the library arms for itself: it sets
 * the uint64_t at the event's ptr to never. timerhub_each() knows by this function which timer not
 * to show, because no program can have it.
 */
void queue_alarm(const struct timerhub_event *event);

/*
 * Records what an observable loop does with its queue in the loop's cell and on its board from now
 * on. Nobody may dispatch the queue meanwhile.
 */
void queue_watch(struct timerhub_queue *queue, struct board *loop_board, struct board_cell *cell);

/* Tells whether handles wait in the outbox, which can all be of expiries that were withdrawn. */
static inline bool queue_holds_events(const struct timerhub_queue *queue)
{
	return outbox_count(&queue->outbox) > 0;
}

#endif
