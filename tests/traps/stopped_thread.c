/* SPDX-License-Identifier: MIT */
/* Implements threads that stop at a chosen point of the library. See stopped_thread.h. */
#include "stopped_thread.h"

#define NOWHERE (-1)
#define POLL_NS (20 * US)

/* The stopped_thread that the calling thread runs, or NULL if the tests do not stop this thread. */
static _Thread_local struct stopped_thread *self;
/*
 * The owner thread of the test's hub. The test points of the owner are reached by the owner thread,
 * or by a `stopped_thread` that advances a manual hub.
 */
static struct stopped_thread owner = { .stop_at = NOWHERE };

static bool is_owners(enum test_point point)
{
	return point == TEST_POINT_OWNER_BEFORE_INBOX || point == TEST_POINT_OWNER_BEFORE_PROMISE ||
	       point == TEST_POINT_OWNER_AFTER_PROMISE ||
	       point == TEST_POINT_OWNER_BEFORE_PUBLISH || point == TEST_POINT_RING_BEFORE_COUNT;
}

static void hook(enum test_point point)
{
	struct stopped_thread *held = self ? self : is_owners(point) ? &owner : NULL;

	if (!held || atomic_load(&held->stop_at) != (int)point ||
	    atomic_fetch_sub(&held->passes, 1) > 0)
		return;
	atomic_store(&held->stop_at, NOWHERE);
	atomic_store(&held->stopped, true);
	while (!atomic_load(&held->released))
		sleep_ns(POLL_NS);
	atomic_store(&held->released, false);
}

static void deed_do(struct deed *deed)
{
	struct timerhub_spec spec =
		SPEC(.flags = TIMERHUB_ABSOLUTE, .expires_ns = deed->at_ns, .data = 'A');

	switch (deed->what) {
	case ARM:
		deed->result = timerhub_arm(deed->queue, &spec, &deed->timer);
		break;
	case REARM:
		deed->result =
			timerhub_rearm(deed->hub, deed->timer, deed->at_ns, TIMERHUB_ABSOLUTE);
		break;
	case CANCEL:
		deed->result = timerhub_cancel(deed->hub, deed->timer);
		break;
	case DRAIN:
		deed->result = timerhub_drain(deed->queue, deed->events, deed->max);
		break;
	case WAIT:
		deed->result = timerhub_wait(deed->queue, deed->events, deed->max, deed->at_ns);
		break;
	case ADVANCE:
		deed->result = timerhub_advance(deed->hub, deed->at_ns, NULL);
		break;
	case STOP:
		timerhub_queue_stop(deed->queue);
		break;
	}
}

static void *stopped_thread_main(void *arg)
{
	self = arg;
	deed_do(&self->deed);
	atomic_store(&self->over, true);
	return NULL;
}

/* Waits until the thread has stopped at its test point, or until its call has returned. */
static void wait_stopped_or_over(const struct stopped_thread *held)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;

	while (!atomic_load(&held->stopped) && !atomic_load(&held->over)) {
		expect_lt(monotonic_ns(), until_ns);
		sleep_ns(POLL_NS);
	}
}

static void wait_stopped(const struct stopped_thread *held)
{
	wait_stopped_or_over(held);
	/* if false, the thread has never reached its test point */
	expect(atomic_load(&held->stopped));
}

void stopped_thread_start(struct stopped_thread *held, enum test_point point)
{
	atomic_store(&held->stop_at, (int)point);
	thread_start(&held->thread, stopped_thread_main, held);
	wait_stopped(held);
}

void stopped_thread_go_on_if_it_comes(struct stopped_thread *held, enum test_point point)
{
	atomic_store(&held->stopped, false);
	atomic_store(&held->stop_at, (int)point);
	atomic_store(&held->released, true);
	wait_stopped_or_over(held);
}

void stopped_thread_finish(struct stopped_thread *held)
{
	atomic_store(&held->released, true);
	thread_join(held->thread);
}

void owner_stop_at(enum test_point point, int nth)
{
	expect(is_owners(point));
	atomic_store(&owner.passes, nth - 1);
	atomic_store(&owner.released, false);
	atomic_store(&owner.stopped, false);
	atomic_store(&owner.stop_at, (int)point);
}

void owner_wait_stopped(void)
{
	wait_stopped(&owner);
}

void owner_release(void)
{
	atomic_store(&owner.released, true);
}

static __attribute__((constructor)) void hook_install(void)
{
	test_point_hook = hook;
}

timerhub_timer arm_periodic(struct rig *rig, uint64_t at_ns, uint64_t interval_ns, uint64_t data)
{
	return arm(rig->queue, SPEC(.flags = TIMERHUB_ABSOLUTE, .expires_ns = at_ns,
	                            .interval_ns = interval_ns, .data = data));
}

struct timerhub_event expect_event(struct rig *rig, uint64_t data)
{
	struct timerhub_event event = take_one(rig->queue);

	expect_eq(event.data, data);
	return event;
}

void expect_nothing(struct rig *rig)
{
	expect_empty(rig->queue);
	if (timerhub_owner_tid(rig->hub) > 0) {
		/*
		 * The owner publishes an event, and signals it after that. A consumer may take the
		 * event before the owner signals it.
		 */
		owner_settles(rig->hub);
		expect_empty(rig->queue);
	}
	expect(!queue_readable(rig->queue));
}

bool queue_readable(const struct timerhub_queue *queue)
{
	return fd_readable(timerhub_queue_fd(queue));
}

void expect_at(struct rig *rig, uint64_t data, uint64_t at_ns)
{
	advance(rig->hub, at_ns - 1);
	expect_nothing(rig);
	advance(rig->hub, at_ns);
	expect_eq(expect_event(rig, data).expires_ns, at_ns);
}
