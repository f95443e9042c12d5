/* SPDX-License-Identifier: MIT */
/*
 * Measures the loops of timerhub_loop.h. Each timer is a timeout in the record of its connection.
 * tick() is a turn of the loop. "timerhub-loop" has a hub, so other threads may arm timers.
 * "timerhub-loop-alone" has no hub. Both wait on the descriptor of the loop.
 */
#include "embedding_objects.h"
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
	int result = timerhub_loop_open(&loop, hub, &config);

	records_open(setup, sizeof(struct timerhub_timeout));
	for (uint32_t i = 0; i <= setup->timers && result == 0; i++)
		result = timerhub_timeout_add(loop, records_timer(i), loop_expired);
	if (result < 0)
		subject_fail("timerhub_loop_open", -result);
}

static void loop_open_alone(const struct subject_setup *setup)
{
	loop_start(setup, NULL);
}

static void loop_open_hub(const struct subject_setup *setup)
{
	struct timerhub *hub;
	int result = timerhub_open(&hub, NULL);

	if (result < 0)
		subject_fail("timerhub_open", -result);
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

static bool loop_wait(uint64_t until_ns)
{
	loop_tick();
	if (!subject_poll(timerhub_loop_fd(loop), until_ns))
		return false;
	loop_tick();
	return true;
}

static void loop_run(bool (*done)(void))
{
	for (loop_tick(); !done(); loop_tick())
		(void)subject_poll(timerhub_loop_fd(loop), UINT64_MAX);
}

#define LOOP_CAN (ALL_CALLS | CAN_BE_LATE | CAN_WAIT | ONE_LOOP)

SUBJECT(timerhub_loop, "timerhub-loop", "timeouts of an event loop that has a hub", LOOP_CAN,
        CALLS(loop_open_hub, loop_tick, loop_arm, loop_arm, loop_cancel, loop_run),
        .wait = loop_wait)

SUBJECT(timerhub_loop_alone, "timerhub-loop-alone", "timeouts of an event loop without a hub",
        LOOP_CAN, CALLS(loop_open_alone, loop_tick, loop_arm, loop_arm, loop_cancel, loop_run),
        .wait = loop_wait)
