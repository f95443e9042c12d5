/* SPDX-License-Identifier: MIT */
/*
 * The descriptor that wakes a loop: a timerfd, or with a hub the eventfd of a queue, where one kept
 * timer stands for all timeouts of the loop.
 */
#ifndef TIMERHUB_WAKE_H
#define TIMERHUB_WAKE_H

#include <timerhub.h>

#include "base/deadline_fd.h"

struct wake {
	struct timerhub *hub; /* hub of the loop, or NULL */
	uint64_t set_ns; /* time from which the descriptor is readable, or UINT64_MAX for never */
	struct deadline_fd deadline_fd; /* of a loop without a hub; not open before it is wanted */
	struct timerhub_queue *queue;   /* queue of the loop, or NULL without a hub */
	timerhub_timer timer;           /* the kept timer of the loop, on the queue */
	bool is_rung; /* true: the loop itself has made the queue's eventfd readable */
};

/* With a hub, open a queue and arm the kept timer. Returns 0, or a negative errno. */
int wake_open(struct wake *wake, struct timerhub *hub, const struct clock *clock);
/* Closes the queue and the descriptor. It may be called twice, and in a forked child. */
void wake_close(struct wake *wake);

/* Returns the descriptor, or a negative errno. The first call creates and sets a timerfd. */
int wake_fd(struct wake *wake, uint64_t next_ns, uint64_t now_ns);

/* In a forked child that adopts the loop: close the copy of the parent's timerfd, and set none. */
void wake_leave_fd(struct wake *wake);

/* Dispatch up to `max` events of the queue. Returns how many, the kept timer's apart. */
unsigned wake_dispatch(struct wake *wake, unsigned max);

bool wake_holds_events(const struct wake *wake);

/* Cancel all timers of the queue, because one of their callbacks has closed the loop. */
void wake_drop_timers(const struct wake *wake);

/*
 * Make the descriptor readable from `next_ns` on. If `next_ns` has passed, it becomes readable at
 * once, with a new edge. Returns 0 or a negative errno. -ECANCELED: the wall clock was set, so read
 * it again before the program blocks.
 */
int wake_set_anew(struct wake *wake, uint64_t next_ns, uint64_t now_ns);

/* Return whether wake_set_anew() has nothing to do. wake_fd_is_set(): of a loop without a hub. */
static inline bool wake_fd_is_set(const struct wake *wake, uint64_t next_ns, uint64_t now_ns)
{
	return wake->deadline_fd.fd < 0 || (next_ns >= wake->set_ns && wake->set_ns > now_ns &&
	                                    !wake->deadline_fd.clock->goes_back);
}

static inline bool wake_is_set(const struct wake *wake, uint64_t next_ns, uint64_t now_ns)
{
	return wake->hub ? next_ns == wake->set_ns && next_ns > now_ns
	                 : wake_fd_is_set(wake, next_ns, now_ns);
}

static inline int wake_set(struct wake *wake, uint64_t next_ns, uint64_t now_ns)
{
	return wake_is_set(wake, next_ns, now_ns) ? 0 : wake_set_anew(wake, next_ns, now_ns);
}

#endif
