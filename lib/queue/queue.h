/* SPDX-License-Identifier: MIT */
/*
 * Declares a queue: the owner puts expiries into it for one group of consumers, and signals them.
 * Its cache lines are split by the thread that writes them.
 */
#ifndef TIMERHUB_QUEUE_H
#define TIMERHUB_QUEUE_H

#include "base/board.h"
#include "queue/notifier.h"
#include "queue/outbox.h"

/* When a queue has this many unpublished events, all queues are published. */
#ifndef PUBLISHER_BATCH
#define PUBLISHER_BATCH 64
#endif

struct timerhub;

/* In the hub's table: the queue is closed, but the owner may still use it in its current pass. */
#define QUEUE_GONE ((void *)(uintptr_t)1)

struct timerhub_queue {
	struct timerhub *hub;       /* fixed at open, like the next two */
	struct board_queue *counts; /* on the board, so that they outlive the queue */
	uint32_t index; /* its index in the hub's table, and in timer_cold.queue_slack */
	struct outbox outbox;
	struct notifier notifier;

	/* Only the owner uses the following fields. */
	_Alignas(CACHE_LINE_BYTES) struct timerhub_queue *next_unpublished; /* in its list */
	unsigned unpublished; /* events put since the last publish; 0: not in the list */
	uint64_t deadlines_ns[PUBLISHER_BATCH]; /* their deadlines */

	_Alignas(CACHE_LINE_BYTES) atomic_u32 interrupts; /* calls of timerhub_interrupt */
	atomic_u32 inside;                                /* threads inside timerhub_wait */
	atomic_u32 stopped; /* 1: these threads do not block; timerhub_queue_stop writes */
	atomic_u32 closing; /* 1: these threads must leave; the closer writes */
};

#endif
