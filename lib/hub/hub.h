/* SPDX-License-Identifier: MIT */
/* The hub with all its parts. */
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
	uint32_t is_opener; /* word of fork_check.h */
	uint32_t capacity;  /* slots in the arena; 0 unless is_opener */
	struct bell_words bells;
	atomic_u32 tickets[OWNER_QUEUES_MAX]; /* of the queues' notifiers, by index */
};

struct timerhub {
	struct arena arena;
	struct inbox inbox;
	struct clock clock;
	struct callbacks callbacks; /* callbacks that dispatching threads run now */
	struct fork_check fork_check;
	struct hub_living *living;   /* page of fork_check */
	atomic_ptr *queues;          /* OWNER_QUEUES_MAX pointers by index; NULL: no queue */
	struct board *board;         /* page with the hub's counters */
	struct memory queues_memory; /* mapping that holds `queues` */
	int board_fd;                /* descriptor of an observable hub's board; else -1 */
	int bell;                    /* eventfd that wakes the owner; in a manual hub the wake fd */
	struct promise promise;
	struct owner owner;
	atomic_u64 queues_end;    /* no queue has used this index or a higher one */
	atomic_u32 advancing;     /* odd while a thread is in timerhub_advance() */
	struct bell_counts rings; /* of `bell` */
};

/* False in a forked child. */
static inline bool hub_alive(const struct timerhub *hub)
{
	return fork_check_goes_on(&hub->fork_check);
}

/* The work that a decision has left, which stored `pair`. */
void hub_submit(struct timerhub *hub, uint32_t slot, enum timer_left left, struct pair pair);

/*
 * If its queue is `queue` or that is TIMER_ANY_QUEUE; the slot is below the capacity. 0 or -ENOENT.
 */
int hub_cancel(struct timerhub *hub, timerhub_timer timer, uint32_t queue);

/* Then the owner uses no pointer of its present pass. */
void hub_wait_pass(struct timerhub *hub);

/* tries of an interrupted open: a filter may interrupt each */
#define HUB_OPEN_TRIES 16

/* how often a closer looks for the others */
#define HUB_CLOSE_POLL_NS 1000000

/* Their waiters return -ESHUTDOWN. */
void hub_close_queues(struct timerhub *hub);

#endif
