/* SPDX-License-Identifier: MIT */
/*
 * Defines a fixture for tests of a loop without a hub. The loop has a manual clock, which the test
 * sets.
 */
#ifndef TESTS_LOOP_RIG_H
#define TESTS_LOOP_RIG_H

#include "harness.h"

#include "loop/loop.h"

/* Opens a loop at the clock value `now_ns`. */
static inline struct timerhub_loop *loop_rig_open(uint32_t timeouts_max, uint64_t now_ns)
{
	struct timerhub_loop_config config = { .size = sizeof(config),
		                               .timeouts_max = timeouts_max };
	struct timerhub_loop *loop;

	expect_eq(timerhub_loop_open(&loop, NULL, &config), 0);
	clock_init(&loop->clock, 0, true);
	expect(clock_set(&loop->clock, now_ns));
	expect_eq(timerhub_loop_turn(loop), 0);
	return loop;
}

/* Moves the clock of the loop to `now_ns`. The clock must not go back. */
static inline void loop_rig_move(struct timerhub_loop *loop, uint64_t now_ns)
{
	expect(clock_set(&loop->clock, now_ns));
}

#endif
