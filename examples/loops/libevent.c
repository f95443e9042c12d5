/* SPDX-License-Identifier: MIT */
/*
 * Shows timerhub in a libevent loop. Prints reminders, see reminders.h. Usage: libevent [FILE...]
 *
 * With EVLOOP_ONCE event_base_loop() makes one turn of libevent's loop. The program calls
 * timerhub_loop_turn() before each event_base_loop(). From libevent 2.2 on, a program can instead
 * call timerhub_loop_turn() in a watcher of evwatch_prepare_new().
 */
#include <event2/event.h>
#include <stdio.h>

#include "reminders.h"

static void readable(evutil_socket_t fd, short what, void *argument)
{
	(void)fd; /* the event only wakes libevent; timerhub_loop_turn() does the work */
	(void)what;
	(void)argument;
}

/*
 * Runs the loop. The event of the timerhub loop's fd is level-triggered. An edge-triggered event
 * (EV_ET) would work too.
 */
static int run(struct event_base *base, struct timerhub_loop *loop)
{
	struct event *event =
		event_new(base, timerhub_loop_fd(loop), EV_READ | EV_PERSIST, readable, NULL);

	if (event == NULL || event_add(event, NULL) < 0)
		return -1;
	int r = 0;
	while (r == 0 && timerhub_loop_turn(loop) >= 0 && reminders_left())
		r = event_base_loop(base, EVLOOP_ONCE);
	event_free(event); /* event_free() does not close the timerhub loop's fd */
	return r;
}

int main(int argc, char **argv)
{
	struct timerhub_loop *loop = reminders_open(argc - 1, argv + 1);
	struct event_base *base = event_base_new();

	if (base == NULL)
		return 1;
	if (run(base, loop) < 0)
		fprintf(stderr, "libevent: the loop failed\n");
	event_base_free(base);
	return reminders_close();
}
