/* SPDX-License-Identifier: MIT */
/*
 * Measures libevent 2.1, with one struct event for each timer, assigned in place. evtimer_add
 * re-arms.
 *
 * The single-threaded workloads run inside a callback of the loop, because libevent caches the time
 * only there, and call event_base_update_cache_time, as its header advises for long callbacks.
 * Other threads call libevent directly (evthread_use_pthreads). Timers are precise
 * (EVENT_BASE_FLAG_PRECISE_TIMER). The many of 30 s and 60 s have common timeouts
 * (event_base_init_common_timeout), which libevent keeps in a queue instead of its heap.
 */
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/thread.h>

#include "base/clock.h"
#include "records.h"

static struct event_base *base;
static struct common {
	uint64_t delay_ns;
	struct timeval handed; /* the timeout to pass to libevent in place of delay_ns */
} commons[] = { { .delay_ns = 30 * NS_PER_S }, { .delay_ns = 60 * NS_PER_S } };

static void libevent_expired(evutil_socket_t fd, short what, void *argument)
{
	(void)fd;
	(void)what;
	subject_expired(records_number(argument));
}

static struct timeval libevent_timeval(uint64_t delay_ns)
{
	return (struct timeval){
		.tv_sec = (time_t)(delay_ns / NS_PER_S),
		.tv_usec = (suseconds_t)(delay_ns % NS_PER_S / NS_PER_US),
	};
}

static void libevent_open(const struct subject_setup *setup)
{
	struct event_config *config;

	if (setup->cross && evthread_use_pthreads() < 0)
		subject_fail("evthread_use_pthreads", 0);
	config = event_config_new();
	if (!config)
		subject_fail("event_config_new", 0);
	(void)event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
	base = event_base_new_with_config(config);
	if (!base)
		subject_fail("event_base_new", 0);
	event_config_free(config);
	for (unsigned i = 0; i < sizeof(commons) / sizeof(commons[0]); i++) {
		struct timeval delay = libevent_timeval(commons[i].delay_ns);
		const struct timeval *handed = event_base_init_common_timeout(base, &delay);

		if (!handed)
			subject_fail("event_base_init_common_timeout", 0);
		commons[i].handed = *handed;
	}
	records_open(setup, sizeof(struct event));
	for (uint32_t i = 0; i <= setup->timers; i++)
		(void)evtimer_assign((struct event *)records_timer(i), base, libevent_expired,
		                     records_timer(i));
}

static void libevent_tick(void)
{
	(void)event_base_update_cache_time(
		base); /* outside the loop the call fails and caches nothing */
}

static int libevent_arm(uint32_t timer, uint64_t delay_ns)
{
	struct timeval delay = libevent_timeval(delay_ns);

	for (unsigned i = 0; i < sizeof(commons) / sizeof(commons[0]); i++)
		if (commons[i].delay_ns == delay_ns)
			delay = commons[i].handed;
	return evtimer_add(records_timer(timer), &delay);
}

static void libevent_cancel(uint32_t timer)
{
	(void)evtimer_del(records_timer(timer));
}

static void libevent_run(bool (*done)(void))
{
	while (!done())
		(void)event_base_loop(base, EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY);
}

static void (*within)(void);

static void libevent_call(evutil_socket_t fd, short what, void *argument)
{
	(void)fd;
	(void)what;
	(void)argument;
	within();
}

static void libevent_within(void (*body)(void))
{
	struct event call;

	within = body;
	(void)event_assign(&call, base, -1, 0, libevent_call, NULL);
	event_active(&call, 0, 0);
	(void)event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

SUBJECT(libevent, "libevent", TIMERS | CROSS | SERVER,
        CALLS(libevent_open, libevent_tick, libevent_arm, libevent_arm, libevent_cancel,
              libevent_run),
        .timers_max = PEER_TIMERS_MAX, .within = libevent_within)
