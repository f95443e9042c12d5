/* SPDX-License-Identifier: MIT */
/* A loop in virtual time, which the test moves, for each way to get its time. */
#ifndef TESTS_LOOP_RIG_H
#define TESTS_LOOP_RIG_H

#include "harness.h"

#include "loop/loop.h"

enum loop_rig_kind {
	LOOP_RIG_OWN_CLOCK, /* a loop that reads a clock; the test sets it from inside */
	LOOP_RIG_MANUAL,
	LOOP_RIG_ON_MANUAL_HUB,
	LOOP_RIG_KINDS
};

/* Not back. */
static inline void loop_rig_move(struct timerhub_loop *loop, uint64_t now_ns)
{
	if (loop->wake.hub)
		expect_eq(timerhub_advance(loop->wake.hub, now_ns, NULL), 0);
	else if (loop->is_manual)
		expect_eq(timerhub_loop_advance(loop, now_ns), 0);
	else
		expect(clock_set(&loop->clock, now_ns));
}

/* Opens a loop at the time `now_ns`. */
static inline struct timerhub_loop *loop_rig_open_kind(enum loop_rig_kind kind,
                                                       uint32_t timeouts_max, uint64_t now_ns)
{
	struct timerhub_config manual = { .size = sizeof(manual), .flags = TIMERHUB_MANUAL };
	struct timerhub_loop_config config = {
		.size = sizeof(config),
		.flags = kind == LOOP_RIG_MANUAL ? TIMERHUB_LOOP_MANUAL : 0,
		.timeouts_max = timeouts_max,
	};
	struct timerhub *hub = NULL;
	struct timerhub_loop *loop;

	manual.timers_max = 64;
	if (kind == LOOP_RIG_ON_MANUAL_HUB)
		expect_eq(timerhub_open(&hub, &manual), 0);
	expect_eq(timerhub_loop_open(&loop, hub, &config), 0);
	if (kind == LOOP_RIG_OWN_CLOCK)
		clock_init(&loop->clock, 0, true);
	loop_rig_move(loop, now_ns);
	expect_eq(timerhub_loop_turn(loop), 0);
	return loop;
}

static inline struct timerhub_loop *loop_rig_open(uint32_t timeouts_max, uint64_t now_ns)
{
	return loop_rig_open_kind(LOOP_RIG_OWN_CLOCK, timeouts_max, now_ns);
}

/* Closes the loop, and its hub. */
static inline void loop_rig_close(struct timerhub_loop *loop)
{
	struct timerhub *hub = loop->wake.hub;

	timerhub_loop_close(loop);
	timerhub_close(hub);
}

#endif
