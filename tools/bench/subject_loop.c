/* SPDX-License-Identifier: MIT */
/*
 * Measures a loop of timerhub_loop.h without a hub; with one, its timeouts cost the same. Each
 * timer is a timeout in the record of its connection, and tick() is a turn of the loop, which waits
 * on the loop's descriptor.
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

static void loop_open(const struct subject_setup *setup)
{
	const struct timerhub_loop_config config = { .size = sizeof(config),
		                                     .timeouts_max = setup->timers + 1 };

	subject_must(timerhub_loop_open(&loop, NULL, &config));
	records_open(setup, sizeof(struct timerhub_timeout));
	for (uint32_t i = 0; i <= setup->timers; i++)
		subject_must(timerhub_timeout_add(loop, records_timer(i), loop_expired));
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

SUBJECT(timerhub_loop_alone, "timerhub-loop-alone", TIMERS | SERVER,
        CALLS(loop_open, loop_tick, loop_arm, loop_arm, loop_cancel, loop_run))
