/* SPDX-License-Identifier: MIT */
/*
 * Shows timerhub in a libev loop. Prints reminders, see reminders.h. Usage: libev [FILE...]
 *
 * An ev_prepare watcher calls timerhub_loop_turn() just before libev blocks. An ev_io watcher on
 * the timerhub loop's fd wakes libev.
 */
#include <ev.h>
#include <stdio.h>

#include "reminders.h"

static void before_blocking(struct ev_loop *loop, ev_prepare *watcher, int revents)
{
	(void)revents;
	if (timerhub_loop_turn(watcher->data) < 0 || !reminders_left())
		ev_break(loop, EVBREAK_ALL);
}

static void readable(struct ev_loop *loop, ev_io *watcher, int revents)
{
	(void)watcher; /* the event only wakes libev; timerhub_loop_turn() does the work */
	if ((revents & EV_ERROR) != 0)
		ev_break(loop, EVBREAK_ALL);
}

int main(int argc, char **argv)
{
	struct timerhub_loop *timeouts = reminders_open(argc - 1, argv + 1);
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	ev_prepare prepare;
	ev_io io;

	if (loop == NULL)
		return 1;
	ev_prepare_init(&prepare, before_blocking);
	prepare.data = timeouts;
	ev_prepare_start(loop, &prepare);
	ev_io_init(&io, readable, timerhub_loop_fd(timeouts), EV_READ);
	ev_io_start(loop, &io);
	ev_run(loop, 0);
	ev_loop_destroy(loop);
	return reminders_close();
}
