/* SPDX-License-Identifier: MIT */
/*
 * Provides the descriptor that wakes a loop. Without a hub, the descriptor is a timerfd, which is
 * created when the program asks for the descriptor. With a hub, the descriptor is the eventfd of a
 * queue, and one kept timer of the hub stands for all timeouts of the loop. Only the loop's thread
 * calls these functions.
 */
#ifndef TIMERHUB_WAKE_H
#define TIMERHUB_WAKE_H

#include <timerhub.h>

#include "base/deadline_fd.h"

struct wake {
	struct timerhub *hub; /* hub of the loop; NULL: no hub */
	struct timerhub_queue *queue;
	timerhub_timer timer; /* the kept timer, on the queue */
	/* Timerfd of a loop without a hub; .fd is -1 before its creation. */
	struct deadline_fd deadline_fd;
	uint64_t set_ns; /* the descriptor is readable from this time on; UINT64_MAX: never */
	bool is_rung;    /* the loop itself has made the queue's eventfd readable */
};

/* Open a queue of the hub, if there is a hub. Returns 0, or a negative errno. */
int wake_open(struct wake *wake, struct timerhub *hub, const struct clock *clock);
/* Close a wake, which may be only partly open. The call is allowed in a forked child. */
void wake_close(struct wake *wake);

/* Returns the descriptor, or a negative errno. The first call creates and sets the descriptor. */
int wake_fd(struct wake *wake, uint64_t next_ns, uint64_t now_ns);

/*
 * Dispatch up to `max` events of the queue. Returns the number of events, without the kept timer's
 * event. `*ret_is_full` says that there may be more.
 */
unsigned wake_dispatch(struct wake *wake, unsigned max, bool *ret_is_full);

/* Cancel all timers of the queue: a callback has closed the loop. */
void wake_drop_timers(const struct wake *wake);

/*
 * Make the descriptor readable from `next_ns` on. If `next_ns` has passed, the descriptor becomes
 * readable at once. Returns false if the wall clock was set since the last call. If the result is
 * false, the caller must read the clock again before it blocks.
 */
bool wake_set(struct wake *wake, uint64_t next_ns, uint64_t now_ns);

#endif
