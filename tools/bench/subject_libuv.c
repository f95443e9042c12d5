/* SPDX-License-Identifier: MIT */
/*
 * Measures libuv, with one embedded uv_timer_t for each timer. uv_timer_again re-arms a timer by
 * its `repeat`, counted from the loop's cached time. This file calls uv_update_time where a loop
 * would have begun a turn. Delays are rounded up to milliseconds. Other threads call the loop
 * through a locked list and uv_async_send, the only thread-safe call of libuv.
 */
#include <uv.h>

#include "clocks.h"
#include "embedding_objects.h"
#include "mailbox.h"

static uv_loop_t loop;
static uv_async_t async;
static bool has_async;

static void libuv_expired(uv_timer_t *timer)
{
	(void)uv_timer_stop(timer); /* uv_timer_again has made the timer periodic */
	subject_expired(records_number(timer));
}

static void libuv_woken(uv_async_t *handle)
{
	(void)handle;
	mailbox_apply();
}

static void libuv_open(const struct subject_setup *setup)
{
	if (uv_loop_init(&loop) < 0)
		subject_fail("uv_loop_init", 0);
	records_open(setup, sizeof(uv_timer_t));
	for (uint32_t i = 0; i <= setup->timers; i++)
		(void)uv_timer_init(&loop, records_timer(i));
	has_async = setup->cross;
	if (has_async && uv_async_init(&loop, &async, libuv_woken) < 0)
		subject_fail("uv_async_init", 0);
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

/*
 * Sleep as libuv's loop does. Poll the loop's descriptor until the loop's timeout has passed, as
 * libuv's manual recommends for embedded loops.
 */
static bool libuv_wait(uint64_t until_ns)
{
	int timeout_ms = uv_backend_timeout(&loop);
	uint64_t timer_ns =
		timeout_ms < 0 ? UINT64_MAX : now_ns() + (unsigned)timeout_ms * NS_PER_MS;

	if (!subject_poll(uv_backend_fd(&loop), timer_ns < until_ns ? timer_ns : until_ns) &&
	    timer_ns >= until_ns)
		return false;
	(void)uv_run(&loop, UV_RUN_NOWAIT);
	return true;
}

static void libuv_wake(void)
{
	(void)uv_async_send(&async);
}

SUBJECT(libuv, "libuv",
        "embedded uv_timer_t, uv_timer_again; across threads a locked list and uv_async",
        ALL_CALLS | CAN_CROSS | CAN_PUSH_TAKE | CAN_BE_LATE | CAN_COUNT_WAKES | CAN_WAIT | ONE_LOOP,
        CALLS(libuv_open, libuv_tick, libuv_arm, libuv_rearm, libuv_cancel, libuv_run),
        .timers_max = PEER_TIMERS_MAX, .wake = libuv_wake, .wait = libuv_wait)
