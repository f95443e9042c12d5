/* SPDX-License-Identifier: MIT */
/*
 * The descriptor that wakes a loop when a timeout may be due. Without a hub it is a timerfd. With a
 * hub it is the eventfd of the loop's queue, on which one kept timer stands for all timeouts of the
 * loop.
 */
#ifndef TIMERHUB_WAKE_H
#define TIMERHUB_WAKE_H

#include <timerhub.h>

#include "base/deadline_fd.h"

struct wake {
	struct timerhub *hub; /* the loop's hub, or NULL */
	uint64_t set_ns;      /* when the descriptor becomes readable; UINT64_MAX: never */
	struct deadline_fd deadline_fd; /* without a hub: the timerfd, once it is asked for */
	struct timerhub_queue *queue;   /* the loop's queue, or NULL without a hub */
	timerhub_timer timer;           /* the kept timer on the queue */
	bool is_rung;                   /* the loop itself has written to the queue's eventfd */
};

/*
 * Opens what wakes a loop: with a hub a queue and the kept timer on it, without a hub nothing yet.
 * Returns 0 or a negative errno.
 */
int wake_open(struct wake *wake, struct timerhub *hub, const struct clock *clock);
/* Closes the queue or the descriptor. It may be called twice, and in a forked child. */
void wake_close(struct wake *wake);

/*
 * Returns the descriptor, or a negative errno. Without a hub the first call creates the timerfd,
 * and sets it to `next_ns`, so a loop that is never asked for it needs no descriptor.
 */
int wake_fd(struct wake *wake, uint64_t next_ns, uint64_t now_ns);

/*
 * Closes a forked child's copy of the parent's timerfd, because to set it would set the parent's.
 * The next wake_fd() creates another one.
 */
void wake_leave_fd(struct wake *wake);

/*
 * Calls the callbacks of at most `max` events of the queue. Returns how many there were, without
 * counting that of the kept timer.
 */
unsigned wake_dispatch(struct wake *wake, unsigned max);

/* Returns whether the queue has events that no dispatch has taken yet. */
bool wake_holds_events(const struct wake *wake);

/*
 * Cancels all timers of the queue. It is for a callback of the queue that closes the loop, because
 * the queue itself cannot be closed while it is being dispatched.
 */
void wake_drop_timers(const struct wake *wake);

/*
 * Makes the descriptor readable from `next_ns` on. If that has passed, the descriptor becomes
 * readable at once, and an edge-triggered poller gets a new edge.
 *
 * Returns 0 or a negative errno. -ECANCELED means that the wall clock was set meanwhile, so it has
 * to be read again before the program blocks.
 */
int wake_set_anew(struct wake *wake, uint64_t next_ns, uint64_t now_ns);

/*
 * Returns whether the descriptor of a loop without a hub need not be set for `next_ns`. If it is
 * set to an earlier time, it is left so, because a wake-up too many is cheaper than a system call
 * for each move.
 */
static inline bool wake_fd_is_set(const struct wake *wake, uint64_t next_ns, uint64_t now_ns)
{
	return wake->deadline_fd.fd < 0 || (next_ns >= wake->set_ns && wake->set_ns > now_ns &&
	                                    !wake->deadline_fd.clock->goes_back);
}

/*
 * Returns whether the descriptor is already set well enough for `next_ns`, with a hub or without.
 */
static inline bool wake_is_set(const struct wake *wake, uint64_t next_ns, uint64_t now_ns)
{
	return wake->hub ? next_ns == wake->set_ns && next_ns > now_ns
	                 : wake_fd_is_set(wake, next_ns, now_ns);
}

/* Makes the descriptor readable from `next_ns` on, if it is not set so; see wake_set_anew(). */
static inline int wake_set(struct wake *wake, uint64_t next_ns, uint64_t now_ns)
{
	return wake_is_set(wake, next_ns, now_ns) ? 0 : wake_set_anew(wake, next_ns, now_ns);
}

#endif
