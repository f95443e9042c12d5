/* SPDX-License-Identifier: MIT */
/*
 * timerhub in a libuv loop. It prints reminders, see reminders.h. Usage: libuv [FILE...]
 *
 * A turn in each iteration could hang up connections whose data lies in their sockets, because an
 * iteration of libuv serves at most 48 arrays of 1,024. Instead, a uv_prepare_t settles right
 * before libuv blocks, and turns when a uv_poll_t has seen the timerhub loop's fd twice. epoll
 * reports each ready socket before it reports the fd again, so all that were ready have been served
 * by then. The fd belongs to the timerhub loop, and libuv never closes it.
 */
#include <stdio.h>
#include <uv.h>

#include "reminders.h"

static struct {
	struct timerhub_loop *loop;
	uv_prepare_t prepare;
	uv_poll_t poll;
	int seen; /* how often the fd was readable since the last turn */
} timeouts;

static void before_blocking(uv_prepare_t *prepare)
{
	int r;

	if (timeouts.seen >= 2) {
		timeouts.seen = 0;
		r = timerhub_loop_turn(timeouts.loop);
	} else {
		r = timerhub_loop_settle(timeouts.loop, NULL);
	}
	if (r >= 0 && reminders_left())
		return;
	/* libuv's loop ends when its last handle is closed */
	uv_close((uv_handle_t *)prepare, NULL);
	uv_close((uv_handle_t *)&timeouts.poll, NULL);
}

static void readable(uv_poll_t *poll, int status, int events)
{
	(void)poll; /* the fd stays readable, so libuv does not block before the turn */
	(void)status;
	(void)events;
	timeouts.seen++;
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
