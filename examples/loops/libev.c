/* SPDX-License-Identifier: MIT */
/* timerhub in a libev loop: reminders, see reminders.h. Usage: libev [FILE...] */
#include <ev.h>
#include <stdio.h>

#include "reminders.h"

static void readable(struct ev_loop *loop, ev_io *watcher, int revents)
{
	if ((revents & EV_ERROR) != 0 || timerhub_dispatch(watcher->data, REMINDERS_BATCH) < 0 ||
	    !reminders_left())
		ev_io_stop(loop, watcher); /* the loop ends with its last watcher */
}

int main(int argc, char **argv)
{
	struct timerhub_queue *queue = reminders_open(argc - 1, argv + 1);
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	ev_io watcher;

	if (loop == NULL)
		return 1;
	ev_io_init(&watcher, readable, timerhub_queue_fd(queue), EV_READ);
	watcher.data = queue;
	ev_io_start(loop, &watcher);
	ev_run(loop, 0);
	ev_loop_destroy(loop);
	return reminders_close();
}
