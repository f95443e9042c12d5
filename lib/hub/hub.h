/* SPDX-License-Identifier: MIT */
/*
 * Declares the hub with all its parts. The public calls are in four files: open.c opens and closes
 * hubs, open_queue.c opens and closes queues, submit.c arms, re-arms and cancels timers, and
 * drain_dispatch.c delivers events.
 */
#ifndef TIMERHUB_HUB_H
#define TIMERHUB_HUB_H

#include <timerhub.h>

#include "base/board.h"
#include "base/clock.h"
#include "owner/inbox.h"
#include "owner/owner.h"
#include "owner/promise.h"
#include "queue/queue.h"
#include "queue/running_callbacks.h"
#include "timer/arena.h"

/* This is zero in a forked child. Written at open. */
struct hub_living {
	struct timer *pairs; /* the arena's */
	uint32_t capacity;   /* slots in the arena; 0: the owner is not in this process */
};

struct timerhub {
	struct arena arena;
	struct inbox inbox;
	struct clock clock;
	struct callbacks callbacks; /* the callbacks that dispatching threads run now */
	struct hub_living *living;  /* zeroed by the kernel in a forked child */
	atomic_ptr *queues;         /* OWNER_QUEUES_MAX queues by index, or NULL */
	struct board *board;        /* the counters of all other parts */
	struct memory living_memory;
	struct memory queues_memory; /* holds the table */
	int board_fd;                /* an observable hub's board; else -1 */
	int bell;                    /* wakes the owner; a manual hub's timerhub_wake_fd */
	struct promise promise;
	struct owner owner;
	atomic_u64 queues_end; /* all indexes from this on were never used by a queue */
	atomic_u32 advancing;  /* manual: odd while a thread is inside advance */
};

/* Returns whether the owner is in this process, or whether a manual hub was opened here. */
static inline bool hub_alive(const struct timerhub *hub)
{
	return hub->living->capacity != 0;
}

/*
 * Do the work that a decision has left: push the slot, and wake the owner if the timer's deadline,
 * read after the push, is earlier than the owner's promise. `pair` is the pair after the decision.
 */
void hub_submit(struct timerhub *hub, uint32_t slot, enum timer_left left, struct pair pair);

/*
 * Cancel the timer if it is on this queue, or with TIMER_ANY_QUEUE on any queue. Its slot must be
 * below the arena's capacity. 0 or -ENOENT.
 */
int hub_cancel(struct timerhub *hub, timerhub_timer timer, uint32_t queue);

/* Wait for the end of the pass in progress. The owner then uses nothing that it read there. */
void hub_wait_pass(struct timerhub *hub);

/* How long a closer sleeps before it checks again whether waiting or advancing threads left. */
#define HUB_CLOSE_POLL_NS 1000000

/* Free all queues that are still open; their waiters return -ESHUTDOWN. */
void hub_close_queues(struct timerhub *hub);

#endif
