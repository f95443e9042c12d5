/* SPDX-License-Identifier: MIT */
/*
 * A loop on the wall clock, which is set while timeouts wait and the program blocks. The loop has
 * to set its timerfd anew each time, although the deadlines have not moved.
 */
#include "harness.h"
#include "process_usage.h"
#include "wall_clock.h"

#include <timerhub_loop.h>

static struct timerhub_loop *loop;
static struct timerhub_timeout timeout;
static unsigned calls;

static void on_timeout(struct timerhub_loop *of, struct timerhub_timeout *called)
{
	expect_le(timerhub_loop_due(of), timerhub_loop_now(of));
	expect(called == &timeout);
	calls++;
}

static void loop_begin(uint64_t delay_ns)
{
	struct timerhub_loop_config config = {
		.size = sizeof(config),
		.clock = TIMERHUB_CLOCK_REALTIME,
	};

	expect_eq(timerhub_loop_open(&loop, NULL, &config), 0);
	expect_le(0, timerhub_loop_fd(loop));
	expect_eq(timerhub_timeout_add(loop, &timeout, on_timeout), 0);
	expect_eq(timerhub_timeout_set(loop, &timeout, delay_ns), 0);
	expect_eq(timerhub_loop_turn(loop), 0);
}

/* As an event loop does, until the timeout has come. */
static void run(void)
{
	while (calls == 0) {
		expect(fd_readable_within(timerhub_loop_fd(loop), ARRIVES));
		expect_le(0, timerhub_loop_turn(loop));
	}
	timerhub_loop_close(loop);
}

/* As an event loop does that finds nothing due any more. */
static void rest(void)
{
	uint64_t block_ns = 0;

	while (block_ns == 0) {
		expect_eq(timerhub_loop_turn(loop), 0);
		expect_eq(timerhub_loop_settle(loop, &block_ns), 0);
	}
	expect(!fd_readable_within(timerhub_loop_fd(loop), 0));
}

TEST(wall_clock_that_is_set_forward_wakes_the_loop, 60)
{
	loop_begin(HOUR);
	wall_clock_set(2 * HOUR);
	run();
}

TEST(wall_clock_that_is_set_back_wakes_the_loop_once, 60)
{
	loop_begin(SEC);
	wall_clock_set(-HOUR);
	expect(fd_readable_within(timerhub_loop_fd(loop), ARRIVES));
	rest();
	expect_eq(calls, 0);
	wall_clock_set(0);
	run();
}

/* The kernel says that it was set after the loop's reading, so the loop must read it again. */
TEST(wall_clock_that_is_set_before_the_loop_blocks_is_read_again, 60)
{
	uint64_t block_ns;

	loop_begin(HOUR);
	wall_clock_set(-HOUR);
	expect_eq(timerhub_loop_settle(loop, &block_ns), 0);
	expect_eq(block_ns, 0);
	rest();
	wall_clock_set(HOUR);
	run();
}

/* A delay counts from the loop's next clock reading, even if the clock was set back before it. */
TEST(delay_counts_from_a_wall_clock_that_was_set_back, 60)
{
	loop_begin(2 * HOUR);
	expect_eq(timerhub_timeout_set(loop, &timeout, SEC / 50), 0);
	wall_clock_set(-HOUR);
	expect_eq(timerhub_loop_turn(loop), 0);
	expect_le(timerhub_timeout_deadline(&timeout), timerhub_loop_now(loop) + SEC / 50);
	run();
}
