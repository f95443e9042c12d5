/* SPDX-License-Identifier: MIT */
/*
 * Shows timerhub in an sd-event loop. Prints reminders, see reminders.h. Usage: sdevent [FILE...]
 *
 * The prepare function of an event source calls timerhub_loop_turn() immediately before sd-event
 * blocks. The timerhub loop's fd wakes sd-event.
 */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

#include "reminders.h"

/*
 * Ends the event loop. If the prepare function itself called sd_event_exit(), sd-event would still
 * block.
 */
static int over(sd_event_source *source, void *argument)
{
	(void)argument;
	return sd_event_exit(sd_event_source_get_event(source), 0);
}

static int before_blocking(sd_event_source *source, void *loop)
{
	const int r = timerhub_loop_turn(loop);

	if (r >= 0 && reminders_left())
		return 0;
	return sd_event_add_defer(sd_event_source_get_event(source), NULL, over, NULL);
}

static int readable(sd_event_source *source, int fd, uint32_t revents, void *loop)
{
	(void)source; /* the event only wakes sd-event; timerhub_loop_turn() does the work */
	(void)fd;
	(void)revents;
	(void)loop;
	return 0;
}

int main(int argc, char **argv)
{
	struct timerhub_loop *loop = reminders_open(argc - 1, argv + 1);
	sd_event_source *source = NULL;
	sd_event *event = NULL;

	int r = sd_event_new(&event);
	if (r >= 0)
		r = sd_event_add_io(event, &source, timerhub_loop_fd(loop), EPOLLIN, readable,
		                    loop);
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
