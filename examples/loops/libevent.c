/* SPDX-License-Identifier: MIT */
/*
 * timerhub in a libevent loop. It prints reminders, see reminders.h. Usage: libevent [FILE...]
 *
 * event_base_loop() with EVLOOP_ONCE serves one batch of ready sockets. The program calls it until
 * all are served, and then turns, right before libevent blocks.
 */
#include <event2/event.h>
#include <stdbool.h>
#include <stdio.h>

#include "reminders.h"

/*
 * After a batch of so many events, more may be ready: libevent's array holds 32 descriptors at
 * first and doubles when it was full, and a few of the 32 can be libevent's own.
 */
enum { ARRAY_MAYBE_FULL = 16, LIBEVENTS_OWN = 2 };

static void readable(evutil_socket_t fd, short what, void *argument)
{
	(void)fd; /* the event only wakes libevent; the next turn does the work */
	(void)what;
	(void)argument;
}

/* Returns whether the loop is to end. Each event_base_loop() forgets that, so ask after each. */
static bool is_ended(struct event_base *base)
{
	return event_base_got_break(base) || event_base_got_exit(base);
}

/*
 * Serves all sockets that are ready, even if they are more than libevent's array holds. The kernel
 * reports each ready socket once before it reports one again, so as many as there are events are
 * enough, and sockets that are always ready do not keep the turn waiting.
 */
static int serve(struct event_base *base)
{
	int left = event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED) + LIBEVENTS_OWN;
	int r = event_base_loop(base, EVLOOP_ONCE);

	while (r == 0 && !is_ended(base)) {
		const int active = event_base_get_max_events(base, EVENT_BASE_COUNT_ACTIVE, 1);

		left -= active;
		if (active < ARRAY_MAYBE_FULL || left <= 0)
			break;
		r = event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	}
	return r;
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
	while (r == 0 && !is_ended(base)) {
		if (timerhub_loop_turn(loop) < 0 || !reminders_left() || is_ended(base))
			break;
		r = serve(base);
	}
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
