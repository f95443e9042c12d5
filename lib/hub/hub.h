/* SPDX-License-Identifier: MIT */
/*
 * Declares the hub with all its parts. open.c opens and closes hubs. open_queue.c opens and closes
 * queues. arm_cancel.c arms, re-arms and cancels timers. drain_dispatch.c delivers events.
 */
#ifndef TIMERHUB_HUB_H
#define TIMERHUB_HUB_H

#include <timerhub.h>

#include "base/bell.h"
#include "base/clock.h"
#include "base/counter_board.h"
#include "base/fork_check.h"
#include "owner/inbox.h"
#include "owner/owner.h"
#include "owner/promise.h"
#include "queue/queue.h"
#include "queue/running_callbacks.h"
#include "timer/arena.h"

/* The page of fork_check.h. */
struct hub_living {
	uint32_t is_opener;  /* the word of fork_check.h */
	uint32_t capacity;   /* number of slots in the arena; 0 unless is_opener */
	struct timer *pairs; /* the pairs of the arena */
	struct bell_words bells;
	atomic_u32 tickets[OWNER_QUEUES_MAX]; /* of the queues' notifiers, by index */
};

struct timerhub {
	struct arena arena;
	struct inbox inbox;
	struct clock clock;
	struct callbacks callbacks; /* the callbacks that dispatching threads run now */
	struct fork_check fork_check;
	struct hub_living *living;   /* the page of fork_check */
	atomic_ptr *queues;          /* OWNER_QUEUES_MAX pointers by index; NULL: no queue */
	struct board *board;         /* the page with the hub's counters */
	struct memory queues_memory; /* the mapping that holds `queues` */
	int board_fd;                /* descriptor of an observable hub's board; else -1 */
	int bell;                    /* eventfd that wakes the owner; in a manual hub the wake fd */
	struct promise promise;
	struct owner owner;
	atomic_u64 queues_end; /* no queue has used this index or a higher one */
	atomic_u32 advancing;  /* odd while a thread is in timerhub_advance() */
};

/* Returns whether this process opened the hub; false in a forked child. */
static inline bool hub_alive(const struct timerhub *hub)
{
	return fork_check_goes_on(&hub->fork_check);
}

/* Do the work that a decision has left. `pair` is the pair that the decision stored. */
void hub_submit(struct timerhub *hub, uint32_t slot, enum timer_left left, struct pair pair);

/*
 * Cancel the timer if its queue has the index `queue`, or if `queue` is TIMER_ANY_QUEUE. The
 * timer's slot must be below the arena's capacity. Returns 0 or -ENOENT.
 */
int hub_cancel(struct timerhub *hub, timerhub_timer timer, uint32_t queue);

/* Wait until the owner's present pass has ended. The owner then uses no pointer of this pass. */
void hub_wait_pass(struct timerhub *hub);

/* An interrupted open is tried this many times: a filter may interrupt each of them. */
#define HUB_OPEN_TRIES 16

/* A closer that waits for other threads checks at this interval. */
#define HUB_CLOSE_POLL_NS 1000000

/* Free all open queues. The waiters of the queues return -ESHUTDOWN. */
void hub_close_queues(struct timerhub *hub);

#endif
