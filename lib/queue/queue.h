/* SPDX-License-Identifier: MIT */
/*
 * A queue: where the owner puts expiries for one group of consumers, and how it tells them. Its
 * cache lines are split by the thread that writes them.
 */
#ifndef TIMERHUB_QUEUE_H
#define TIMERHUB_QUEUE_H

#include "base/board.h"
#include "queue/notifier.h"
#include "queue/outbox.h"

/* Events put into a queue before consumers are let at them. */
#ifndef TELLER_BATCH
#define TELLER_BATCH 64
#endif

struct timerhub;

/* In the hub's table: the queue is as good as gone, but the owner may not have noticed yet. */
#define QUEUE_GONE ((void *)(uintptr_t)1)

struct timerhub_queue {
	struct timerhub *hub;       /* fixed at open, like the next two */
	struct board_queue *counts; /* on the board, for when the queue is gone */
	uint32_t index; /* its place in the hub's table, and in timer_cold.queue_slack */
	struct outbox outbox;
	struct notifier notifier;

	/* The owner's alone. */
	_Alignas(CACHE_LINE_BYTES) struct timerhub_queue *next_unpublished; /* in its list */
	unsigned unpublished; /* events put since the last publish; 0: not in the list */
	unsigned untold;      /* of these, without events put back */
	uint64_t deadlines_ns[TELLER_BATCH]; /* the deadlines of the untold */

	_Alignas(CACHE_LINE_BYTES) atomic_u32 interrupts; /* calls of timerhub_interrupt */
	atomic_u32 inside;                                /* threads inside timerhub_wait */
	atomic_u32 stopped; /* 1: none of them blocks any more; timerhub_queue_stop writes */
	atomic_u32 closing; /* 1: those threads are to leave; the closer writes */
};

#endif
