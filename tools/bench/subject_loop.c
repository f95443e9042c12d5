/* SPDX-License-Identifier: MIT */
/*
 * Measures the loops of timerhub_loop.h. Each timer is a timeout in the record of its connection,
 * and tick() is a turn of the loop, which waits on the loop's descriptor. "timerhub-loop" has a
 * hub, so that other threads may arm timers; "timerhub-loop-alone" has none.
 */
#include <poll.h>

#include "records.h"
#include "timerhub_loop.h"

static struct timerhub_loop *loop;

static void loop_expired(struct timerhub_loop *self, struct timerhub_timeout *timeout)
{
	(void)self;
	subject_expired(records_number(timeout));
}

static void loop_start(const struct subject_setup *setup, struct timerhub *hub)
{
	const struct timerhub_loop_config config = { .size = sizeof(config),
		                                     .timeouts_max = setup->timers + 1 };

	subject_must(timerhub_loop_open(&loop, hub, &config));
	records_open(setup, sizeof(struct timerhub_timeout));
	for (uint32_t i = 0; i <= setup->timers; i++)
		subject_must(timerhub_timeout_add(loop, records_timer(i), loop_expired));
}

static void loop_open_alone(const struct subject_setup *setup)
{
	loop_start(setup, NULL);
}

static void loop_open_hub(const struct subject_setup *setup)
{
	struct timerhub *hub;

	subject_must(timerhub_open(&hub, NULL));
	loop_start(setup, hub);
}

static void loop_tick(void)
{
	subject_must(timerhub_loop_turn(loop));
}

static int loop_arm(uint32_t timer, uint64_t delay_ns)
{
	return timerhub_timeout_set(loop, records_timer(timer), delay_ns);
}

static void loop_cancel(uint32_t timer)
{
	(void)timerhub_timeout_stop(loop, records_timer(timer));
}

static void loop_run(bool (*done)(void))
{
	struct pollfd event = { .fd = timerhub_loop_fd(loop), .events = POLLIN };

	for (loop_tick(); !done(); loop_tick())
		(void)poll(&event, 1, -1);
}

#define LOOP(identifier, name, how, opens)                                                         \
	SUBJECT(identifier, name, how, TIMERS | SERVER | LATE,                                     \
	        CALLS(opens, loop_tick, loop_arm, loop_arm, loop_cancel, loop_run))

LOOP(timerhub_loop, "timerhub-loop", "timeouts of an event loop that has a hub", loop_open_hub)
LOOP(timerhub_loop_alone, "timerhub-loop-alone", "timeouts of an event loop without a hub",
     loop_open_alone)
