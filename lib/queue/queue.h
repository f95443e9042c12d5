/* SPDX-License-Identifier: MIT */
/* Most cache lines have one kind of writer: owner, consumers or callers. */
#ifndef TIMERHUB_QUEUE_H
#define TIMERHUB_QUEUE_H

#include "base/counter_board.h"
#include "queue/notifier.h"
#include "queue/outbox.h"

/* So many unpublished events of a queue publish all queues' events. */
#ifndef PUBLISHER_BATCH
#define PUBLISHER_BATCH 64
#endif

struct timerhub;

/* in the hub's table: closed, but perhaps in use by the owner in this pass */
#define QUEUE_GONE ((void *)(uintptr_t)1)

struct timerhub_queue {
	struct timerhub *hub;       /* fixed at open, like `counts` and `index` */
	struct board_queue *counts; /* on the board, which outlives the queue */
	uint32_t index;             /* in the hub's table and in timer_cold.queue_slack */
	struct outbox outbox;
	struct notifier notifier;

	/* owner's three; the publisher's list */
	_Alignas(CACHE_LINE_BYTES) struct timerhub_queue *next_unpublished;
	unsigned unpublished;                   /* 0: not in the list */
	uint64_t deadlines_ns[PUBLISHER_BATCH]; /* of the unpublished events */

	_Alignas(CACHE_LINE_BYTES) atomic_u32 interrupts;
	atomic_u32 inside;  /* threads in timerhub_wait() */
	atomic_u32 stopped; /* 1: waiters don't block */
	atomic_u32 closing; /* 1: waiters must return */
};

/*
 * The callback of a loop's alarm, the only timer of the library's own: sets the uint64_t at the
 * event's ptr to never. By it, which no program has, timerhub_each() knows the alarm.
 */
void queue_alarm(const struct timerhub_event *event);

/* Perhaps of a withdrawn expiry. */
static inline bool queue_holds_events(const struct timerhub_queue *queue)
{
	return outbox_count(&queue->outbox) > 0;
}

#endif
