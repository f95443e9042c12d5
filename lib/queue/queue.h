/* SPDX-License-Identifier: MIT */
/*
 * Declares a queue. The owner puts expired timers into a queue, and signals the queue's consumers.
 * Most cache lines of the struct have one kind of writer: the owner, consumers or callers.
 */
#ifndef TIMERHUB_QUEUE_H
#define TIMERHUB_QUEUE_H

#include "base/counter_board.h"
#include "queue/notifier.h"
#include "queue/outbox.h"

/* When a queue has this many unpublished events, the events of all queues are published. */
#ifndef PUBLISHER_BATCH
#define PUBLISHER_BATCH 64
#endif

struct timerhub;

/* In the hub's table: a queue that is closed, but that the owner may still use in this pass. */
#define QUEUE_GONE ((void *)(uintptr_t)1)

struct timerhub_queue {
	struct timerhub *hub;       /* fixed at open, like `counts` and `index` */
	struct board_queue *counts; /* counters on the board, which outlives the queue */
	uint32_t index; /* the queue's index in the hub's table, and in timer_cold.queue_slack */
	struct outbox outbox;
	struct notifier notifier;

	/* Only the owner uses these three fields. `next_unpublished` links the publisher's list. */
	_Alignas(CACHE_LINE_BYTES) struct timerhub_queue *next_unpublished;
	unsigned unpublished; /* number of unpublished events, 0 if the queue is not listed */
	uint64_t deadlines_ns[PUBLISHER_BATCH]; /* the deadlines of the unpublished events */

	_Alignas(CACHE_LINE_BYTES) atomic_u32 interrupts; /* number of interrupts so far */
	atomic_u32 inside;                                /* number of threads in timerhub_wait() */
	atomic_u32 stopped; /* 1: waiters do not block. Set by timerhub_queue_stop(). */
	atomic_u32 closing; /* 1: waiters must return. Set by the closer. */
};

/*
 * The callback of a loop's alarm, the only timer that the library arms for itself: sets the
 * uint64_t at the event's ptr to never. timerhub_each() knows the alarm by this function, whose
 * address no program has.
 */
void queue_alarm(const struct timerhub_event *event);

/* Returns whether a consumer would find a handle, perhaps of a withdrawn expiry. */
static inline bool queue_holds_events(const struct timerhub_queue *queue)
{
	return outbox_count(&queue->outbox) > 0;
}

#endif
