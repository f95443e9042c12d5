/* SPDX-License-Identifier: MIT */
/*
 * Measures libev, used as ev(3) recommends, with one embedded ev_timer for each timer. Idle
 * timeouts use `repeat` and ev_timer_again (way 2 of its manual), which counts from the loop's
 * cached time; ev_now_update is called where a loop would have begun a turn. Other threads call the
 * loop through a locked list and ev_async_send.
 */
#include <ev.h>

#include "clocks.h"
#include "embedding_objects.h"
#include "mailbox.h"

static struct ev_loop *loop;
static ev_async async;

static void libev_expired(struct ev_loop *owner, ev_timer *timer, int events)
{
	(void)events;
	ev_timer_stop(owner, timer); /* ev_timer_again has made the timer periodic */
	subject_expired(records_number(timer));
}

static void libev_woken(struct ev_loop *owner, ev_async *watcher, int events)
{
	(void)owner;
	(void)watcher;
	(void)events;
	mailbox_apply();
}

static void libev_init(ev_timer *timer)
{
	ev_timer_init(timer, libev_expired, 0., 0.);
}

static void libev_open(const struct subject_setup *setup)
{
	loop = ev_loop_new(EVFLAG_AUTO);
	if (!loop)
		subject_fail("ev_loop_new", 0);
	records_open(setup, sizeof(ev_timer));
	for (uint32_t i = 0; i <= setup->timers; i++)
		libev_init(records_timer(i));
	if (setup->cross) {
		ev_async_init(&async, libev_woken);
		ev_async_start(loop, &async);
	}
}

static void libev_tick(void)
{
	ev_now_update(loop);
}

static int libev_arm(uint32_t timer, uint64_t delay_ns)
{
	ev_timer *self = records_timer(timer);

	ev_timer_set(self, (double)delay_ns * 1e-9, 0.);
	ev_timer_start(loop, self);
	return 0;
}

/* Re-arm the timer. The first re-arm of a timer sets `repeat`, and later re-arms use this value. */
static int libev_rearm(uint32_t timer, uint64_t delay_ns)
{
	ev_timer *self = records_timer(timer);

	self->repeat = (double)delay_ns * 1e-9;
	ev_timer_again(loop, self);
	return 0;
}

static void libev_cancel(uint32_t timer)
{
	ev_timer_stop(loop, records_timer(timer));
}

static void libev_run(bool (*done)(void))
{
	while (!done())
		(void)ev_run(loop, EVRUN_ONCE);
}

static void libev_alarmed(struct ev_loop *owner, ev_timer *timer, int events)
{
	(void)owner;
	(void)timer;
	(void)events;
}

/*
 * Sleep as libev's loop does. An additional timer ends the sleep, because libev has no call that
 * returns the time until the next timer.
 */
static bool libev_wait(uint64_t until_ns)
{
	uint64_t now = now_ns();
	ev_timer alarm;
	bool early;

	if (now >= until_ns)
		return false;
	ev_now_update(loop);
	ev_timer_init(&alarm, libev_alarmed, (double)(until_ns - now) * 1e-9, 0.);
	ev_timer_start(loop, &alarm);
	(void)ev_run(loop, EVRUN_ONCE);
	early = ev_is_active(&alarm);
	ev_timer_stop(loop, &alarm);
	return early;
}

static void libev_wake(void)
{
	ev_async_send(loop, &async);
}

SUBJECT(libev, "libev",
        "embedded ev_timer, ev_timer_again; across threads a locked list and ev_async",
        ALL_CALLS | CAN_CROSS | CAN_PUSH_TAKE | CAN_BE_LATE | CAN_COUNT_WAKES | CAN_WAIT | ONE_LOOP,
        CALLS(libev_open, libev_tick, libev_arm, libev_rearm, libev_cancel, libev_run),
        .wake = libev_wake, .wait = libev_wait)
