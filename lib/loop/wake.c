/* SPDX-License-Identifier: MIT */
/*
 * Implements wake.h. Tested by tests/service/test_loop.c.
 *
 * Without a hub, a timerfd wakes the loop. If the loop has to wake later than before, the timerfd
 * is not moved, because each move would be a system call, while a wake-up that is too early happens
 * only once. If the clock can be set back, the timerfd is set each time. wake_set_deadline_fd()
 * sets it even if it is readable, because this gives an edge-triggered poller a new event. If
 * somebody has set the wall clock, the timerfd stays readable until it is set again.
 *
 * With a hub, a timer on the loop's queue wakes the loop. It is a kept timer (TIMERHUB_KEEP), which
 * moves whenever the time of the loop's first timeout changes. That takes only a compare-and-swap.
 * When the timer expires, the hub's owner makes the queue's eventfd readable, and the dispatch
 * calls queue_alarm() for the timer. queue_alarm() changes wake->set_ns, so wake_dispatch() sees
 * that one of the calls was not to a callback of the program.
 *
 * If timeouts are due already, the loop itself writes to the eventfd. The owner would do so too
 * late, and that of a manual hub only in the next timerhub_advance(). The loop clears the eventfd
 * before it dispatches, and never after, so an event that arrives in between makes the eventfd
 * readable again.
 */
#include "loop/wake.h"

#include <errno.h>

#include "base/bell.h"
#include "base/bits.h"
#include "base/invariant.h"
#include "queue/queue.h"

/*
 * The timer on the hub is set to "never" for this time and all later ones, because a hub does not
 * accept such deadlines.
 */
#define WAKE_MAX_NS ((uint64_t)1 << 62)

/* Creates the timer by which the hub wakes the loop. The timer has no deadline yet. */
static int wake_arm(struct wake *wake)
{
	struct timerhub_spec spec = {
		.size = sizeof(spec),
		.flags = TIMERHUB_ABSOLUTE | TIMERHUB_KEEP,
		.expires_ns = TIMERHUB_NEVER,
		.ptr = &wake->set_ns,
		.fn = queue_alarm,
	};

	return timerhub_arm(wake->queue, &spec, &wake->timer);
}

int wake_open(struct wake *wake, struct timerhub *hub, const struct clock *clock)
{
	int result;

	*wake = (struct wake){ .set_ns = UINT64_MAX };
	deadline_fd_init(&wake->deadline_fd, clock);
	if (!hub)
		return 0;
	result = timerhub_queue_open(hub, &wake->queue, NULL);
	if (result < 0)
		return result;
	wake->hub = hub;
	return wake_arm(wake);
}

void wake_close(struct wake *wake)
{
	timerhub_queue_close(wake->queue);
	wake->queue = NULL;
	wake->hub = NULL;
	deadline_fd_close(&wake->deadline_fd);
}

/*
 * Cancels a timer if it belongs to the queue *context. timerhub_each() calls this for each timer of
 * the hub.
 */
static int wake_drop_timer(const struct timerhub_event *timer, uint64_t interval_ns, void *context)
{
	struct timerhub_queue *queue = context;

	(void)interval_ns;
	if (timer->queue == queue)
		(void)timerhub_cancel(timerhub_queue_hub(queue), timer->timer);
	return 0;
}

void wake_drop_timers(const struct wake *wake)
{
	if (wake->hub)
		(void)timerhub_each(wake->hub, wake_drop_timer, wake->queue);
}

/*
 * Sets the timerfd to become readable at `next_ns`. Returns 0 or a negative errno. After -ECANCELED
 * the timerfd is set too, but the wall clock was changed.
 */
static int wake_set_deadline_fd(struct wake *wake, uint64_t next_ns, uint64_t now_ns)
{
	/* A time of 0 would disarm the timerfd, so use 1 instead. */
	int result = deadline_fd_set(&wake->deadline_fd, u64_max(next_ns, 1));

	if (result < 0 && result != -ECANCELED)
		return result; /* the next turn tries again, because set_ns is unchanged */
	wake->set_ns = next_ns;
	if (next_ns <= now_ns)
		deadline_fd_settle(&wake->deadline_fd);
	return result;
}

/* Moves the timer on the hub to `next_ns`, or writes to the eventfd if that time has passed. */
static int wake_set_timer(struct wake *wake, uint64_t next_ns, uint64_t now_ns)
{
	invariant(wake->queue);
	if (next_ns <= now_ns) {
		bell_ring_by(wake->queue->notifier.fd, wake->queue->notifier.bells);
		wake->is_rung = true;
		return 0;
	}
	wake->set_ns = next_ns;
	/*
	 * Ignore the result, because this cannot fail: the timer ends only if it is cancelled, and
	 * no program has its handle.
	 */
	(void)timerhub_rearm(wake->hub, wake->timer,
	                     next_ns < WAKE_MAX_NS ? next_ns : TIMERHUB_NEVER, TIMERHUB_ABSOLUTE);
	return 0;
}

int wake_set_anew(struct wake *wake, uint64_t next_ns, uint64_t now_ns)
{
	return wake->hub ? wake_set_timer(wake, next_ns, now_ns)
	                 : wake_set_deadline_fd(wake, next_ns, now_ns);
}

int wake_fd(struct wake *wake, uint64_t next_ns, uint64_t now_ns)
{
	int result;

	if (wake->hub)
		return timerhub_queue_fd(wake->queue);
	if (wake->deadline_fd.fd >= 0)
		return wake->deadline_fd.fd;
	result = deadline_fd_create(&wake->deadline_fd);
	if (result == 0)
		result = wake_set(wake, next_ns, now_ns);
	if (result < 0 && result != -ECANCELED) {
		deadline_fd_close(&wake->deadline_fd);
		return result;
	}
	return wake->deadline_fd.fd;
}

void wake_leave_fd(struct wake *wake)
{
	deadline_fd_close(&wake->deadline_fd);
	wake->set_ns = UINT64_MAX;
}

bool wake_holds_events(const struct wake *wake)
{
	return wake->queue && queue_holds_events(wake->queue);
}

unsigned wake_dispatch(struct wake *wake, unsigned max)
{
	uint64_t set_ns = wake->set_ns;
	int called;

	if (!wake->hub)
		return 0;
	if (wake->is_rung)
		bell_clear_by(wake->queue->notifier.fd, wake->queue->notifier.bells);
	wake->is_rung = false;
	called = timerhub_dispatch(wake->queue, max);
	if (called < 0) /* a signal handler has forked, and this is the child */
		called = 0;
	return (unsigned)called - (called > 0 && wake->set_ns != set_ns);
}
