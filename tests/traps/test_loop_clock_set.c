/* SPDX-License-Identifier: MIT */
/*
 * Tests a loop on the wall clock, while the test sets this clock forward and back. After each
 * setting of the clock, the loop's descriptor must become readable. The deadlines of the timeouts
 * are points on the wall clock. No callback may come early.
 */
#include "harness.h"
#include "process_usage.h"
#include "wall_clock.h"

#include <timerhub_loop.h>

#include <time.h>

static struct timerhub_loop *loop;
static struct timerhub_timeout timeout;
static unsigned calls;
static uint64_t due_ns; /* deadline on the wall clock; a callback before it is an error */

static uint64_t wall_ns(void)
{
	struct timespec ts;

	expect_eq(clock_gettime(CLOCK_REALTIME, &ts), 0);
	return (uint64_t)ts.tv_sec * SEC + (uint64_t)ts.tv_nsec;
}

static void on_timeout(struct timerhub_loop *of, struct timerhub_timeout *which)
{
	expect(of == loop && which == &timeout);
	expect_le(due_ns, wall_ns());
	calls++;
}

static void begin(void)
{
	struct timerhub_loop_config config = { .size = sizeof(config),
		                               .clock = TIMERHUB_CLOCK_REALTIME };

	wall_clock_set(0);
	expect_eq(timerhub_loop_open(&loop, NULL, &config), 0);
	expect_eq(timerhub_timeout_add(loop, &timeout, on_timeout), 0);
	expect_le(0, timerhub_loop_fd(loop));
	expect_eq(timerhub_loop_turn(loop), 0);
	calls = 0;
}

/*
 * Waits for the loop's descriptor and makes turns, until the descriptor is not readable or a
 * callback was called.
 */
static void turn_while_readable(void)
{
	do
		(void)timerhub_loop_turn(loop);
	while (calls == 0 &&
	       (timerhub_loop_timeout(loop) == 0 || fd_readable(timerhub_loop_fd(loop))));
}

TEST(wall_clock_set_forward_over_a_deadline_calls_it, 60)
{
	begin();
	due_ns = wall_ns() + HOUR;
	expect_eq(timerhub_timeout_set(loop, &timeout, HOUR), 0);
	turn_while_readable();
	expect_eq(calls, 0);
	wall_clock_set(HOUR / 2);
	expect(fd_readable_within(timerhub_loop_fd(loop), ARRIVES));
	turn_while_readable();
	expect_eq(calls, 0);
	expect(!fd_readable(timerhub_loop_fd(loop)));
	wall_clock_set(2 * HOUR);
	expect(fd_readable_within(timerhub_loop_fd(loop), ARRIVES));
	turn_while_readable();
	expect_eq(calls, 1);
	timerhub_loop_close(loop);
}

TEST(wall_clock_set_back_keeps_a_deadline, 60)
{
	uint64_t deadline_ns;

	begin();
	due_ns = wall_ns() + HOUR;
	expect_eq(timerhub_timeout_set(loop, &timeout, HOUR), 0);
	turn_while_readable();
	deadline_ns = timerhub_timeout_deadline(&timeout);
	wall_clock_set(0 - 2 * HOUR);
	expect(fd_readable_within(timerhub_loop_fd(loop), ARRIVES));
	turn_while_readable();
	expect_eq(calls, 0);
	expect_eq(timerhub_timeout_deadline(&timeout), deadline_ns);
	expect_lt(2 * HOUR, timerhub_loop_timeout(loop));
	/* After the clock was set, a delay counts from the new value of the clock. */
	due_ns = wall_ns() + SEC / 100;
	expect_eq(timerhub_timeout_set(loop, &timeout, SEC / 100), 0);
	while (calls == 0) {
		turn_while_readable();
		if (calls == 0)
			expect(fd_readable_within(timerhub_loop_fd(loop), ARRIVES));
	}
	expect_lt(wall_ns(), deadline_ns - 2 * HOUR);
	timerhub_loop_close(loop);
}

TEST_LOOP(wall_clock_set_inside_a_turn_moves_its_delays, 60, 2)
{
	const int64_t steps_ns[] = { -2 * (int64_t)HOUR, 2 * (int64_t)HOUR };
	uint64_t before_ns;

	begin();
	expect_eq(timerhub_timeout_set(loop, &timeout, HOUR), 0);
	wall_clock_set((uint64_t)steps_ns[_i]);
	before_ns = wall_ns();
	turn_while_readable();
	expect_eq(calls, 0);
	expect_le(before_ns + HOUR, timerhub_timeout_deadline(&timeout));
	expect_le(timerhub_timeout_deadline(&timeout), wall_ns() + HOUR);
	timerhub_loop_close(loop);
}
