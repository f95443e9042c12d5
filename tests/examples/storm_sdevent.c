/* SPDX-License-Identifier: MIT */
/*
 * Holds the recipe of examples/loops/sdevent.c to "serve the sockets first". 20 connections with an
 * idle timeout have data in their sockets, and the handler of the first takes longer than the
 * timeout. No connection may be hung up: the handlers of the others move their timeouts before the
 * turn. The recipe itself is included, with this file's sockets in place of the reminders.
 */
#include <stdio.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>
#include <time.h>
#include <unistd.h>

#include "../../examples/loops/reminders.h"

#define CONNECTIONS 20
#define IDLE_NS UINT64_C(50000000)

static struct connection {
	struct timerhub_timeout idle; /* the first member */
	int fds[2];
} connections[CONNECTIONS];

static struct timerhub_loop *storm_loop;
static int served, hung_up;

static void on_idle(struct timerhub_loop *of, struct timerhub_timeout *timeout)
{
	(void)of;
	(void)timeout;
	hung_up++;
}

static int on_data(sd_event_source *source, int fd, uint32_t revents, void *argument)
{
	struct connection *one = argument;
	char byte;

	(void)source;
	(void)revents;
	if (read(fd, &byte, 1) != 1)
		return -1;
	if (served++ == 0) /* a handler that outlasts the timeouts of all */
		nanosleep(&(struct timespec){ .tv_nsec = (long)(2 * IDLE_NS) }, NULL);
	return timerhub_timeout_set(storm_loop, &one->idle, UINT64_C(3600000000000));
}

/* Creates the event loop with the sockets in it. */
static int storm_event_new(sd_event **ret_event)
{
	int r = sd_event_new(ret_event);

	for (int i = 0; r >= 0 && i < CONNECTIONS; i++) {
		struct connection *one = &connections[i];

		r = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, one->fds);
		if (r == 0 && write(one->fds[1], "x", 1) != 1)
			r = -1;
		if (r == 0)
			r = sd_event_add_io(*ret_event, NULL, one->fds[0], 1 /* EPOLLIN */, on_data,
			                    one);
		if (r >= 0)
			r = timerhub_timeout_add(storm_loop, &one->idle, on_idle);
		if (r == 0)
			r = timerhub_timeout_set(storm_loop, &one->idle, IDLE_NS);
	}
	return r;
}

struct timerhub_loop *reminders_open(int file_count, char **files)
{
	(void)file_count;
	(void)files;
	return timerhub_loop_open(&storm_loop, NULL, NULL) == 0 ? storm_loop : NULL;
}

bool reminders_left(void)
{
	return served < CONNECTIONS && hung_up == 0;
}

int reminders_close(void)
{
	printf("served %d, hung up %d of %d\n", served, hung_up, CONNECTIONS);
	timerhub_loop_close(storm_loop);
	return served == CONNECTIONS && hung_up == 0 ? 0 : 1;
}

#define sd_event_new storm_event_new
#include "../../examples/loops/sdevent.c"
