/* SPDX-License-Identifier: MIT */
/* timerhub in a libevent loop: reminders, see reminders.h. Usage: libevent [FILE...] */
#include <event2/event.h>
#include <stdio.h>

#include "reminders.h"

struct source {
	struct timerhub_queue *queue;
	struct event *event;
};

static void readable(evutil_socket_t fd, short what, void *argument)
{
	struct source *source = argument;

	(void)fd;
	(void)what;
	if (timerhub_dispatch(source->queue, REMINDERS_BATCH) < 0 || !reminders_left())
		event_del(source->event); /* the loop ends with its last event */
}

/* EV_PERSIST alone is level-triggered; with EV_ET it works as well. */
static int run(struct event_base *base, struct source *source)
{
	source->event = event_new(base, timerhub_queue_fd(source->queue), EV_READ | EV_PERSIST,
	                          readable, source);
	if (source->event == NULL || event_add(source->event, NULL) < 0)
		return -1;
	const int r = event_base_dispatch(base);
	event_free(source->event); /* leaves the fd open: it is the queue's */
	return r;
}

int main(int argc, char **argv)
{
	struct source source = { .queue = reminders_open(argc - 1, argv + 1) };
	struct event_base *base = event_base_new();

	if (base == NULL)
		return 1;
	if (run(base, &source) < 0)
		fprintf(stderr, "libevent: the loop failed\n");
	event_base_free(base);
	return reminders_close();
}
