/* SPDX-License-Identifier: MIT */
/*
 * Shows timerhub in a libuv loop. Prints reminders, see reminders.h. Usage: libuv [FILE...]
 *
 * A uv_prepare_t calls timerhub_loop_turn() right before libuv blocks. A uv_poll_t on the timerhub
 * loop's fd wakes libuv. The fd belongs to the timerhub loop, and libuv never closes it.
 */
#include <stdio.h>
#include <uv.h>

#include "reminders.h"

static struct {
	struct timerhub_loop *loop;
	uv_prepare_t prepare;
	uv_poll_t poll;
} timeouts;

static void before_blocking(uv_prepare_t *prepare)
{
	if (timerhub_loop_turn(timeouts.loop) >= 0 && reminders_left())
		return;
	/* libuv's loop ends when its last handle is closed */
	uv_close((uv_handle_t *)prepare, NULL);
	uv_close((uv_handle_t *)&timeouts.poll, NULL);
}

static void readable(uv_poll_t *poll, int status, int events)
{
	(void)poll; /* the event only wakes libuv; timerhub_loop_turn() does the work */
	(void)status;
	(void)events;
}

int main(int argc, char **argv)
{
	uv_loop_t *loop = uv_default_loop();

	timeouts.loop = reminders_open(argc - 1, argv + 1);
	int r = uv_prepare_init(loop, &timeouts.prepare);
	if (r == 0)
		r = uv_prepare_start(&timeouts.prepare, before_blocking);
	if (r == 0)
		r = uv_poll_init(loop, &timeouts.poll, timerhub_loop_fd(timeouts.loop));
	if (r == 0)
		r = uv_poll_start(&timeouts.poll, UV_READABLE, readable);
	if (r == 0)
		r = uv_run(loop, UV_RUN_DEFAULT);
	if (r != 0)
		fprintf(stderr, "libuv: %s\n", uv_strerror(r));
	uv_loop_close(loop);
	return reminders_close();
}
