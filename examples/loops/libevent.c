/* SPDX-License-Identifier: MIT */
/*
 * Shows timerhub in a libevent loop. Prints reminders, see reminders.h. Usage: libevent [FILE...]
 *
 * With EVLOOP_ONCE event_base_loop() serves one batch of ready sockets. The program serves all of
 * them so, and then calls timerhub_loop_turn(), right before libevent blocks.
 */
#include <event2/event.h>
#include <stdbool.h>
#include <stdio.h>

#include "reminders.h"

/*
 * libevent's array holds 32 ready descriptors, and doubles when it was full. A few of them may be
 * libevent's own, so half of it may have been all.
 */
enum { ARRAY_MAYBE_FULL = 16, LIBEVENTS_OWN = 2 };

static void readable(evutil_socket_t fd, short what, void *argument)
{
	(void)fd; /* the event only wakes libevent; timerhub_loop_turn() does the work */
	(void)what;
	(void)argument;
}

/* Each event_base_loop() forgets these at its start, so ask after each. */
static bool is_ended(struct event_base *base)
{
	return event_base_got_break(base) || event_base_got_exit(base);
}

/*
 * Serves also the sockets that the array did not hold. The kernel reports each ready socket once
 * before it reports one again, so as many as there are events are enough, and sockets that are
 * always ready do not keep the turn waiting.
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
