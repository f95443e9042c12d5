/* SPDX-License-Identifier: MIT */
/*
 * timerhub in an sd-event loop. It prints reminders, see reminders.h. Usage: sdevent [FILE...]
 *
 * sd-event runs one handler an iteration, so a turn right before it blocks would come in the middle
 * of a batch, and hang up connections whose data lies in their sockets. Instead, the timerhub
 * loop's source has the lowest priority and turns when it is dispatched, after all sockets; its
 * prepare function only settles. If some socket is always ready, it turns after as many iterations
 * as the program has sources: sd-event dispatches each that waits before it dispatches one again.
 */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

#include "reminders.h"

static struct timerhub_loop *loop;
static int sources; /* of the program in sd-event; a server counts its sockets here */
static int waiting; /* iterations in which the descriptor was readable, but sockets came first */

static int over(sd_event_source *source, void *argument)
{
	(void)argument;
	return sd_event_exit(sd_event_source_get_event(source), 0);
}

/* A prepare function that called sd_event_exit() itself would still let sd-event block. */
static int end(sd_event_source *source)
{
	return sd_event_add_defer(sd_event_source_get_event(source), NULL, over, NULL);
}

static int turn(sd_event_source *source)
{
	const int r = timerhub_loop_turn(loop);

	waiting = 0;
	return r >= 0 && reminders_left() ? 0 : end(source);
}

static int before_blocking(sd_event_source *source, void *argument)
{
	(void)argument;
	if (sd_event_source_get_pending(source) > 0)
		return ++waiting <= sources ? 0 : turn(source);
	return timerhub_loop_settle(loop, NULL) < 0 ? end(source) : 0;
}

static int readable(sd_event_source *source, int fd, uint32_t revents, void *argument)
{
	(void)fd;
	(void)revents;
	(void)argument;
	return turn(source);
}

int main(int argc, char **argv)
{
	sd_event_source *source = NULL;
	sd_event *event = NULL;

	loop = reminders_open(argc - 1, argv + 1);
	int r = sd_event_new(&event);
	if (r >= 0)
		r = sd_event_add_io(event, &source, timerhub_loop_fd(loop), EPOLLIN, readable,
		                    NULL);
	if (r >= 0)
		r = sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IDLE);
	if (r >= 0)
		r = sd_event_source_set_prepare(source, before_blocking);
	if (r >= 0)
		r = sd_event_loop(event);
	if (r < 0)
		fprintf(stderr, "sdevent: %s\n", strerror(-r));
	sd_event_source_unref(source);
	sd_event_unref(event);
	return reminders_close();
}
