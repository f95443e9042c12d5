/* SPDX-License-Identifier: MIT */
/*
 * timerhub in a libev loop. It prints reminders, see reminders.h. Usage: libev [FILE...]
 *
 * A turn right before libev blocks would hang up connections whose data lies in their sockets:
 * libev's array holds 64 ready descriptors at first, and a wait may be interrupted. Instead, an
 * ev_io on the timerhub loop's fd starts an ev_idle, which turns when no socket is ready. The
 * ev_prepare only settles. If sockets never stop being ready, it turns after 24 iterations: libev
 * doubles its array when it was full, so these serve every socket, however many there are.
 */
#include <errno.h>
#include <ev.h>
#include <stdio.h>

#include "reminders.h"

#define TURN_AT_LEAST 24

static struct {
	struct timerhub_loop *loop;
	ev_prepare prepare;
	ev_io io;
	ev_idle idle;
	int waiting; /* iterations in which the fd was readable, but sockets came first */
} timeouts;

/* Calls timerhub_loop_turn(), with both watchers stopped: a callback may run the libev loop. */
static void turn(struct ev_loop *loop)
{
	timeouts.waiting = 0;
	ev_idle_stop(loop, &timeouts.idle);
	const int r = timerhub_loop_turn(timeouts.loop);
	ev_io_start(loop, &timeouts.io);
	if (r < 0 || !reminders_left())
		ev_break(loop, EVBREAK_ALL);
}

static void before_blocking(struct ev_loop *loop, ev_prepare *prepare, int revents)
{
	(void)prepare;
	(void)revents;
	if (ev_is_active(&timeouts.idle)) {
		if (++timeouts.waiting >= TURN_AT_LEAST)
			turn(loop);
		return;
	}
	const int r = timerhub_loop_settle(timeouts.loop, NULL);
	if (r < 0 && r != -EBUSY) /* -EBUSY: a callback runs the loop */
		ev_break(loop, EVBREAK_ALL);
}

static void readable(struct ev_loop *loop, ev_io *io, int revents)
{
	if ((revents & EV_ERROR) != 0)
		ev_break(loop, EVBREAK_ALL);
	ev_io_stop(loop,
	           io); /* stop it, because an ev_idle runs only when no other event is there */
	ev_idle_start(loop, &timeouts.idle);
}

static void sockets_served(struct ev_loop *loop, ev_idle *idle, int revents)
{
	(void)idle;
	(void)revents;
	turn(loop);
}

int main(int argc, char **argv)
{
	timeouts.loop = reminders_open(argc - 1, argv + 1);
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);

	if (loop == NULL)
		return 1;
	ev_prepare_init(&timeouts.prepare, before_blocking);
	ev_prepare_start(loop, &timeouts.prepare);
	ev_io_init(&timeouts.io, readable, timerhub_loop_fd(timeouts.loop), EV_READ);
	ev_io_start(loop, &timeouts.io);
	ev_idle_init(&timeouts.idle, sockets_served);
	ev_set_priority(&timeouts.idle, EV_MINPRI);
	ev_run(loop, 0);
	ev_loop_destroy(loop);
	return reminders_close();
}
