/* SPDX-License-Identifier: MIT */
/* timerhub in an sd-event loop: reminders, see reminders.h. Usage: sdevent [FILE...] */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

#include "reminders.h"

static int readable(sd_event_source *source, int fd, uint32_t revents, void *queue)
{
	const int r = timerhub_dispatch(queue, REMINDERS_BATCH);

	(void)fd;
	(void)revents;
	if (r < 0 || !reminders_left())
		return sd_event_exit(sd_event_source_get_event(source), r < 0 ? r : 0);
	return 0;
}

int main(int argc, char **argv)
{
	struct timerhub_queue *queue = reminders_open(argc - 1, argv + 1);
	sd_event *event = NULL;

	int r = sd_event_new(&event);
	if (r >= 0)
		r = sd_event_add_io(event, NULL, timerhub_queue_fd(queue), EPOLLIN, readable,
		                    queue);
	if (r >= 0)
		r = sd_event_loop(event);
	if (r < 0)
		fprintf(stderr, "sdevent: %s\n", strerror(-r));
	sd_event_unref(event);
	return reminders_close();
}
