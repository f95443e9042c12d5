/* SPDX-License-Identifier: MIT */
/*
 * Measures libuv, with one embedded uv_timer_t for each timer. uv_timer_again re-arms a timer by
 * its `repeat`, counted from the loop's cached time; uv_update_time is called where a loop would
 * have begun a turn. Delays are rounded up to milliseconds.
 */
#include <uv.h>

#include "base/clock.h"
#include "records.h"

static uv_loop_t loop;

static void libuv_expired(uv_timer_t *timer)
{
	(void)uv_timer_stop(timer); /* uv_timer_again has made the timer periodic */
	subject_expired(records_number(timer));
}

static void libuv_open(const struct subject_setup *setup)
{
	if (uv_loop_init(&loop) < 0)
		subject_fail("uv_loop_init", 0);
	records_open(setup, sizeof(uv_timer_t));
	for (uint32_t i = 0; i <= setup->timers; i++)
		(void)uv_timer_init(&loop, records_timer(i));
}

static void libuv_tick(void)
{
	uv_update_time(&loop);
}

static uint64_t ms_from_ns(uint64_t ns)
{
	return (ns + NS_PER_MS - 1) / NS_PER_MS;
}

static int libuv_arm(uint32_t timer, uint64_t delay_ns)
{
	return uv_timer_start(records_timer(timer), libuv_expired, ms_from_ns(delay_ns), 0);
}

static int libuv_rearm(uint32_t timer, uint64_t delay_ns)
{
	uv_timer_set_repeat(records_timer(timer), ms_from_ns(delay_ns));
	return uv_timer_again(records_timer(timer));
}

static void libuv_cancel(uint32_t timer)
{
	(void)uv_timer_stop(records_timer(timer));
}

static void libuv_run(bool (*done)(void))
{
	while (!done())
		(void)uv_run(&loop, UV_RUN_ONCE);
}

SUBJECT(libuv, "libuv", TIMERS | SERVER,
        CALLS(libuv_open, libuv_tick, libuv_arm, libuv_rearm, libuv_cancel, libuv_run),
        .timers_max = PEER_TIMERS_MAX)
