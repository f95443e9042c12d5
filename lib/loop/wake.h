/* SPDX-License-Identifier: MIT */
/*
 * The descriptor that wakes a loop when a timeout may be due. Without a hub it is a timerfd. With a
 * hub it is the eventfd of the loop's queue. On that queue there is one kept timer (TIMERHUB_KEEP),
 * which expires when the first timeout of the loop is due.
 */
#ifndef TIMERHUB_WAKE_H
#define TIMERHUB_WAKE_H

#include <timerhub.h>

#include "base/deadline_fd.h"

struct wake {
	struct timerhub *hub; /* the loop's hub, or NULL */
	uint64_t set_ns;      /* when the descriptor becomes readable; UINT64_MAX: never */
	struct deadline_fd deadline_fd; /* the timerfd of a loop without a hub */
	struct timerhub_queue *queue;   /* the loop's queue, or NULL without a hub */
	timerhub_timer timer;           /* the timer on the queue that wakes the loop */
	bool is_rung;                   /* the loop itself has written to the queue's eventfd */
};

/*
 * If the loop has a hub, opens the queue and arms the timer by which the hub wakes the loop. A loop
 * without a hub has a timerfd instead, which wake_fd() creates. Returns 0 or a negative errno.
 */
int wake_open(struct wake *wake, struct timerhub *hub, const struct clock *clock);
/*
 * Closes the loop's queue if the loop has a hub, and otherwise the timerfd that wakes the loop. A
 * second call does nothing. A forked child may call it too.
 */
void wake_close(struct wake *wake);

/*
 * Returns the descriptor that wakes the loop, or a negative errno. Without a hub, the first call
 * creates a timerfd, which becomes readable at `next_ns`.
 */
int wake_fd(struct wake *wake, uint64_t next_ns, uint64_t now_ns);

/*
 * Closes a forked child's copy of the timerfd, because setting it would set the parent's too. The
 * next wake_fd() creates another one.
 */
void wake_leave_fd(struct wake *wake);

/*
 * Dispatches the loop's queue: calls the callbacks of at most `max` events. Returns how many it has
 * called. The timer that wakes the loop does not count.
 */
unsigned wake_dispatch(struct wake *wake, unsigned max);

/* Returns true if the queue has events that no dispatch has taken yet. */
bool wake_holds_events(const struct wake *wake);

/* Cancels all timers of the loop's queue. Does nothing if the loop has no hub. */
void wake_drop_timers(const struct wake *wake);

/*
 * Makes the loop's descriptor readable at `next_ns`, or at once if that time has passed. Returns
 * -ECANCELED if the wall clock was changed, and otherwise 0 or another negative errno.
 */
int wake_set_anew(struct wake *wake, uint64_t next_ns, uint64_t now_ns);

/* Returns true if the timerfd of a loop without a hub need not be set for `next_ns`. */
static inline bool wake_fd_is_set(const struct wake *wake, uint64_t next_ns, uint64_t now_ns)
{
	return wake->deadline_fd.fd < 0 || (deadline_fd_ends_by(wake->set_ns, next_ns, now_ns) &&
	                                    !wake->deadline_fd.clock->goes_back);
}

/*
 * Returns true if wake_set_anew() need not be called, because the descriptor becomes readable at
 * `next_ns` or earlier anyway, or does not exist yet.
 */
static inline bool wake_is_set(const struct wake *wake, uint64_t next_ns, uint64_t now_ns)
{
	return wake->hub ? next_ns == wake->set_ns && next_ns > now_ns
	                 : wake_fd_is_set(wake, next_ns, now_ns);
}

/*
 * Makes sure that the descriptor that wakes the loop becomes readable at `next_ns`. Returns the
 * result of wake_set_anew(), or 0 if nothing had to be done.
 */
static inline int wake_set(struct wake *wake, uint64_t next_ns, uint64_t now_ns)
{
	return wake_is_set(wake, next_ns, now_ns) ? 0 : wake_set_anew(wake, next_ns, now_ns);
}

#endif
