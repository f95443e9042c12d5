/* SPDX-License-Identifier: MIT */
/*
 * A hub with all its parts, and what the files of this folder need of each other. These files
 * implement the calls of timerhub.h.
 */
#ifndef TIMERHUB_HUB_H
#define TIMERHUB_HUB_H

#include <timerhub.h>

#include "base/bell.h"
#include "base/clock.h"
#include "base/fork_check.h"
#include "board/counter_board.h"
#include "owner/inbox.h"
#include "owner/owner.h"
#include "owner/promise.h"
#include "queue/queue.h"
#include "queue/running_callbacks.h"
#include "timer/arena.h"

/*
 * A page of memory that is all zero in a forked child, so that a call which runs on in the child
 * does no harm to the parent (fork_check.h).
 */
struct hub_living {
	uint32_t is_opener; /* 1 in the process that opened the hub, 0 in a child */
	uint32_t capacity;  /* number of slots; 0 in a child, so that no handle is valid there */
	struct bell_words bells;
	atomic_u32 tickets[OWNER_QUEUES_MAX]; /* futexes on which the queues' waiters block */
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
	atomic_u64 queues_end;    /* all queues so far have had an index below this one */
	atomic_u32 advancing;     /* odd while a thread is in timerhub_advance() */
	struct bell_counts rings; /* how often `bell` was rung and cleared */
};

/* Returns true in the process that opened the hub, and false in a forked child. */
static inline bool hub_alive(const struct timerhub *hub)
{
	return fork_check_goes_on(&hub->fork_check);
}

/*
 * Finishes a change of a timer: puts its slot into the inbox, and wakes the owner if the timer is
 * due before the owner wakes by itself.
 */
void hub_submit(struct timerhub *hub, uint32_t slot, enum timer_left left, struct pair pair);

/*
 * Cancels a timer of the queue with this index (or TIMER_ANY_QUEUE), and frees its slot. Returns 0
 * or -ENOENT. The slot number in the handle must be valid.
 */
int hub_cancel(struct timerhub *hub, timerhub_timer timer, uint32_t queue);

/*
 * Waits until the owner has finished its present round of work or, in a manual hub, until a running
 * timerhub_advance() has ended. Then a queue that was taken out of hub->queues may be freed.
 */
void hub_wait_pass(struct timerhub *hub);

/*
 * Checks the arguments of drain, wait or dispatch. Returns 0, -EINVAL, or -EOWNERDEAD in a forked
 * child.
 */
int queue_check(const struct timerhub_queue *queue, const void *events, unsigned max);

/*
 * Takes up to `max` events from the queue. If more are left, makes sure that the queue's eventfd is
 * readable and gives a new edge.
 */
unsigned queue_take(struct timerhub_queue *queue, struct timerhub_event *events, unsigned max);

/*
 * Returns `result`, or -EOWNERDEAD in a forked child. It is used at the end of a call, because a
 * signal handler may have forked during the call.
 */
int queue_result(const struct timerhub_queue *queue, int result);

/*
 * How often an open tries again if a signal interrupts it. There is a limit because a seccomp
 * filter could return EINTR every time.
 */
#define HUB_OPEN_TRIES 16

/* How long a close sleeps before it checks again whether other threads have left. */
#define HUB_CLOSE_POLL_NS 1000000

/* Closes all queues of the hub. Threads that are blocked in timerhub_wait() return -ESHUTDOWN. */
void hub_close_queues(struct timerhub *hub);

#endif
