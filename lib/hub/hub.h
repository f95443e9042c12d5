/* SPDX-License-Identifier: MIT */
/*
 * A hub with all its parts, and what the files of this folder need of each other. Those are the
 * calls of timerhub.h.
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

/* A page of memory that the kernel zeroes in a forked child, see fork_check.h. */
struct hub_living {
	uint32_t is_opener; /* the word that fork_check.h asks */
	uint32_t capacity;  /* number of slots; 0 in a child, so that no handle has a slot there */
	struct bell_words bells;
	atomic_u32 tickets[OWNER_QUEUES_MAX]; /* the futexes of the queues' notifiers, by index */
};
_Static_assert(offsetof(struct hub_living, is_opener) == 0, "fork_check.h asks the first word");

struct timerhub {
	struct arena arena;
	struct inbox inbox;
	struct clock clock;
	struct callbacks callbacks; /* which callbacks the dispatching threads run now */
	struct fork_check fork_check;
	struct hub_living *living;   /* the page of fork_check */
	atomic_ptr *queues;          /* OWNER_QUEUES_MAX pointers by index; NULL: no queue */
	struct board *board;         /* the memory with the hub's counters */
	struct memory queues_memory; /* the mapping that holds `queues` */
	int board_fd;                /* descriptor of an observable hub's board; else -1 */
	int bell;                    /* eventfd that wakes the owner; in a manual hub the wake fd */
	struct promise promise;
	struct owner owner;
	atomic_u64 queues_end;    /* no queue has ever had this index or a higher one */
	atomic_u32 advancing;     /* odd while a thread is in timerhub_advance() */
	struct bell_counts rings; /* how often `bell` was rung and cleared */
};

/* Tells whether this is the process that opened the hub, and not a forked child. */
static inline bool hub_alive(const struct timerhub *hub)
{
	return fork_check_goes_on(&hub->fork_check);
}

/*
 * Does what a change of a timer has left to do: pushes the slot to the inbox, and wakes the owner
 * if the timer is due before the owner would wake by itself.
 */
void hub_submit(struct timerhub *hub, uint32_t slot, enum timer_left left, struct pair pair);

/*
 * Cancels a timer and frees its slot, which must be below the capacity. `queue` is the index of the
 * timer's queue, or TIMER_ANY_QUEUE. Returns 0, or -ENOENT if there is no such timer.
 */
int hub_cancel(struct timerhub *hub, timerhub_timer timer, uint32_t queue);

/*
 * Waits until the owner has finished the round of work that it is in, if it is in one. Afterwards
 * it uses no pointer that it had loaded before this call, so that a queue which was taken out of
 * hub->queues may be freed. In a manual hub, the owner is the thread inside timerhub_advance().
 */
void hub_wait_pass(struct timerhub *hub);

/* Checks the arguments of a consumer's call. Returns 0, -EINVAL, or -EOWNERDEAD in a child. */
int queue_check(const struct timerhub_queue *queue, const void *events, unsigned max);

/*
 * Takes up to `max` events from the queue and stores them in `events`. If it leaves some, the
 * queue's descriptor stays readable, or becomes so again.
 */
unsigned queue_take(struct timerhub_queue *queue, struct timerhub_event *events, unsigned max);

/*
 * Returns the result of a call, or -EOWNERDEAD if a signal handler has forked inside it and this is
 * the child. What such a call did since then has changed only the child's memory, because what it
 * hands to the kernel is zero there.
 */
int queue_result(const struct timerhub_queue *queue, int result);

/*
 * How often an open that is interrupted tries again. There is a limit because a filter may
 * interrupt each.
 */
#define HUB_OPEN_TRIES 16

/* How long a close waits before it looks again whether the other threads have left. */
#define HUB_CLOSE_POLL_NS 1000000

/* Closes all queues of the hub, so that their waiters return -ESHUTDOWN. */
void hub_close_queues(struct timerhub *hub);

#endif
