/* SPDX-License-Identifier: MIT */
/*
 * The descriptor that wakes a loop: none until the program asks for it, then a timerfd; or, of a
 * loop with a hub, the eventfd of a queue, on which one kept timer of the hub stands for all
 * timeouts of the loop. The loop's thread calls.
 */
#ifndef TIMERHUB_WAKE_H
#define TIMERHUB_WAKE_H

#include <timerhub.h>

#include "base/deadline_fd.h"

struct wake {
	struct timerhub *hub; /* NULL: none */
	struct timerhub_queue *queue;
	timerhub_timer timer;           /* kept; on the queue */
	struct deadline_fd deadline_fd; /* without a hub; .fd -1: not asked for yet */
	uint64_t set_ns; /* the descriptor is readable from this instant on; UINT64_MAX: never */
	bool is_rung;    /* the queue's eventfd was made readable by us */
};

/* Open a queue of the hub, if there is one. 0, or a negative errno. */
int wake_open(struct wake *wake, struct timerhub *hub, const struct clock *clock);
/* Fine if it was opened halfway, and in a forked child. */
void wake_close(struct wake *wake);

/* Returns the descriptor; creates it if there is none yet, and sets it. Or a negative errno. */
int wake_fd(struct wake *wake, uint64_t next_ns, uint64_t now_ns);

/*
 * Dispatch up to `max` events of the queue. Returns how many, without that of the kept timer;
 * `*ret_is_full`: there may be more.
 */
unsigned wake_dispatch(struct wake *wake, unsigned max, bool *ret_is_full);

/* Cancel all timers of the queue: for a loop that is closed by a callback of it. */
void wake_drop_timers(const struct wake *wake);

/*
 * Make the descriptor readable from `next_ns` on, and at once if that has passed. False: the wall
 * clock was set since the last call, and the caller must read it before it blocks.
 */
bool wake_set(struct wake *wake, uint64_t next_ns, uint64_t now_ns);

#endif
