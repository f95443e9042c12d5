/* SPDX-License-Identifier: MIT */
/*
 * Runs the two loops of timerhub_loop_settle(3), which settle_orders.h contains: they end when a
 * socket's handler says so, and do not block if the settle fails. Then lets virtual time pass by
 * the page's run_until().
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <timerhub_loop.h>

static int is_over;
static uint64_t blocked_ns;

static int over(void)
{
	return is_over;
}

static void wait_ns(uint64_t time_ns)
{
	blocked_ns = time_ns;
	if (!is_over)
		return;
	fputs("it waits after the end\n", stderr);
	exit(1);
}

static void wait_ms(int time_ms)
{
	wait_ns((uint64_t)time_ms);
}

static void serve_sockets(void)
{
	is_over = 1;
}

#include "settle_orders.h"

#define HOUR UINT64_C(3600000000000)
#define STORM 600 /* more than two turns call */

static struct timerhub_timeout hourly, storm[STORM];
static unsigned hours, called;

static void each_hour(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	if (timerhub_loop_now(loop) != ++hours * HOUR ||
	    timerhub_timeout_set(loop, timeout, HOUR) < 0)
		hours = 1000;
}

static void in_the_storm(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	(void)timeout;
	called += timerhub_loop_now(loop) == 2 * HOUR;
}

static int run_in_virtual_time(void)
{
	const struct timerhub_loop_config config = { .size = sizeof(config),
		                                     .flags = TIMERHUB_LOOP_MANUAL };
	struct timerhub_loop *loop;
	int result;

	if (timerhub_loop_open(&loop, NULL, &config) < 0 ||
	    timerhub_timeout_add(loop, &hourly, each_hour) < 0 ||
	    timerhub_timeout_set(loop, &hourly, HOUR) < 0)
		return 1;
	for (unsigned i = 0; i < STORM; i++)
		if (timerhub_timeout_add(loop, &storm[i], in_the_storm) < 0 ||
		    timerhub_timeout_set(loop, &storm[i], 2 * HOUR) < 0)
			return 1;
	result = run_until(loop, 2 * HOUR) < 0 || hours != 2 || called != STORM ||
	         timerhub_loop_now(loop) != 2 * HOUR;
	result |= run_until(loop, 5 * HOUR - 1) < 0 || hours != 4 ||
	          timerhub_loop_now(loop) != 5 * HOUR - 1;
	timerhub_loop_close(loop);
	if (result != 0)
		fprintf(stderr, "virtual time: %u hours, %u of %u called\n", hours, called, STORM);
	return result;
}

int main(void)
{
	struct timerhub_loop *loop;

	if (timerhub_loop_open(&loop, NULL, NULL) < 0)
		return 1;
	expire_before(loop);
	is_over = 0;
	expire_after(loop);
	timerhub_loop_close(loop);
	is_over = 0;
	expire_after(NULL); /* the settle fails */
	if (blocked_ns != 0)
		fprintf(stderr, "a failed settle: it blocks for %" PRIu64 " ns\n", blocked_ns);
	return blocked_ns != 0 || run_in_virtual_time() != 0;
}
