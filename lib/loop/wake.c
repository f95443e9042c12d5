/* SPDX-License-Identifier: MIT */
/*
 * Implements wake.h. A timerfd that has not expired is not moved to a later time, unless the clock
 * can go back: an early expiry costs one wake-up, each move a system call. The kept timer of a hub
 * moves whenever the next time changes, by a compare-and-swap; timerhub_dispatch() calls
 * queue_alarm() when it expires. If timeouts are due already, the loop itself writes to the
 * eventfd, because the owner's write comes too late, and in a manual hub in the next
 * timerhub_advance() only. The loop clears the eventfd before it dispatches, so it sees every
 * event. Tested by tests/service/test_loop.c.
 */
#include "loop/wake.h"

#include <errno.h>

#include "base/bell.h"
#include "base/bits.h"
#include "queue/queue.h"

/* Later times are never. Below the latest deadline of a hub. */
#define WAKE_MAX_NS ((uint64_t)1 << 62)

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
 * Set the timerfd. If timeouts are due already it is readable, but only a new setting gives an
 * edge-triggered poller a new edge. If the wall clock was set, only that ends its being readable.
 */
static int wake_set_deadline_fd(struct wake *wake, uint64_t next_ns, uint64_t now_ns)
{
	/* The time 0 would disarm the timerfd, so use 1 instead. */
	int result = deadline_fd_set(&wake->deadline_fd, u64_max(next_ns, 1), now_ns);

	if (result < 0 && result != -ECANCELED)
		return result; /* set_ns is unchanged, so the next turn tries again */
	wake->set_ns = next_ns;
	if (next_ns <= now_ns)
		deadline_fd_settle(&wake->deadline_fd);
	return result;
}

static int wake_set_timer(struct wake *wake, uint64_t next_ns, uint64_t now_ns)
{
	if (next_ns <= now_ns) {
		bell_ring_by(wake->queue->notifier.fd, wake->queue->notifier.bells);
		wake->is_rung = true;
		return 0;
	}
	wake->set_ns = next_ns;
	/* The re-arm cannot fail: no program has the handle of the kept timer. */
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
	if (called < 0) /* this is a child, forked by a signal handler */
		called = 0;
	return (unsigned)called - (called > 0 && wake->set_ns != set_ns);
}
