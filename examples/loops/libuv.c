/* SPDX-License-Identifier: MIT */
/*
 * timerhub in a libuv loop: reminders, see reminders.h. Usage: libuv [FILE...]
 *
 * uv_prepare_t turns right before libuv blocks; uv_poll_t wakes it. libuv does not close the fd,
 * which is right: it is the loop's.
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
	uv_close((uv_handle_t *)prepare, NULL); /* libuv's loop ends with its last handle */
	uv_close((uv_handle_t *)&timeouts.poll, NULL);
}

static void readable(uv_poll_t *poll, int status, int events)
{
	(void)poll; /* the event only wakes the loop; the turn does the work */
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
