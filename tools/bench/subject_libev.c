/* SPDX-License-Identifier: MIT */
/*
 * Measures libev, used as ev(3) recommends, with one embedded ev_timer for each timer. Idle
 * timeouts use `repeat` and ev_timer_again (way 2 of its manual), which counts from the loop's
 * cached time; ev_now_update is called where a loop would have begun a turn.
 */
#include <ev.h>

#include "records.h"

static struct ev_loop *loop;

static void libev_expired(struct ev_loop *owner, ev_timer *timer, int events)
{
	(void)events;
	ev_timer_stop(owner, timer); /* ev_timer_again has made the timer periodic */
	subject_expired(records_number(timer));
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

SUBJECT(libev, "libev", TIMERS | SERVER,
        CALLS(libev_open, libev_tick, libev_arm, libev_rearm, libev_cancel, libev_run))
