/* SPDX-License-Identifier: MIT */
/*
 * Runs the two loops of timerhub_loop_settle(3), which settle_orders.h contains: they end when a
 * socket's handler says so, and do not block if the settle fails.
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
	return blocked_ns != 0;
}
