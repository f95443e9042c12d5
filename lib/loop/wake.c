/* SPDX-License-Identifier: MIT */
/*
 * Implements wake.h. Tested by tests/service/test_loop.c.
 *
 * Without a hub, a timerfd wakes the loop. One that has not expired is not moved to a later time,
 * because each move would be a system call, and an expiry that comes too early costs only one
 * wake-up. If the clock can go back, the timerfd is set each time.
 *
 * With a hub, a kept timer on the loop's queue wakes the loop. It moves whenever the time of the
 * loop's first timeout changes, which takes only a compare-and-swap. When it expires, the owner
 * makes the queue's eventfd readable, and the dispatch calls queue_alarm() for it.
 *
 * If timeouts are due already, the loop itself writes to the eventfd. The owner would do so too
 * late, and that of a manual hub only in the next timerhub_advance(). The loop clears the eventfd
 * before it dispatches, never after, so an event that arrives in between makes the eventfd readable
 * again.
 */
#include "loop/wake.h"

#include <errno.h>

#include "base/bell.h"
#include "base/bits.h"
#include "base/invariant.h"
#include "queue/queue.h"

/*
 * The kept timer is set to "never" for times from here on, because later deadlines would not be
 * valid in a hub.
 */
#define WAKE_MAX_NS ((uint64_t)1 << 62)

/*
 * Arms the kept timer, with no deadline yet. Its callback queue_alarm() sets set_ns to "never", so
 * that wake_dispatch() sees that it has expired.
 */
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

/* Cancels one timer of a hub if it is on the queue *context. */
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
 * Sets the timerfd to `next_ns`. It is set also if it is readable already, because an
 * edge-triggered poller gets a new edge only by a new setting. A timerfd that is readable because
 * the wall clock was set stops being so only by a new setting too.
 */
static int wake_set_deadline_fd(struct wake *wake, uint64_t next_ns, uint64_t now_ns)
{
	/* 0 would disarm the timerfd, so 1 stands for it. */
	int result = deadline_fd_set(&wake->deadline_fd, u64_max(next_ns, 1));

	if (result < 0 && result != -ECANCELED)
		return result; /* the next turn tries again, because set_ns is unchanged */
	wake->set_ns = next_ns;
	if (next_ns <= now_ns)
		deadline_fd_settle(&wake->deadline_fd);
	return result;
}

/* Moves the kept timer to `next_ns`, or writes to the eventfd if that time has passed. */
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
	 * The result is ignored because this cannot fail: a kept timer ends only when it is
	 * cancelled, and no program has its handle to do that.
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
