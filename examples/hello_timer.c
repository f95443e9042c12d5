/* SPDX-License-Identifier: MIT */
/*
 * The smallest program with a hub: it waits for a periodic timer and a one-shot.
 * To compile it: cc -pthread hello_timer.c $(pkg-config --cflags --libs timerhub)
 */
#include <stdio.h>
#include <string.h>
#include <timerhub.h>

#define MS UINT64_C(1000000)

enum { HELLO, TICK };

int main(void)
{
	struct timerhub *hub = NULL;
	struct timerhub_queue *queue = NULL;
	struct timerhub_event event = { .data = TICK };
	const struct timerhub_spec tick = {
		.size = sizeof(tick), .expires_ns = 100 * MS, .interval_ns = 100 * MS, .data = TICK
	};

	int r = timerhub_open(&hub, NULL);
	if (r == 0)
		r = timerhub_queue_open(hub, &queue, NULL);
	if (r == 0)
		r = timerhub_arm(queue, &tick, NULL);
	if (r == 0)
		r = timerhub_after(queue, 350 * MS, HELLO, NULL);
	while (r >= 0 && event.data == TICK) {
		r = timerhub_wait(queue, &event, 1, UINT64_MAX);
		if (r == 1)
			puts(event.data == TICK ? "tick" : "hello, after 350 ms");
	}
	if (r < 0)
		fprintf(stderr, "hello_timer: %s\n", strerror(-r));
	timerhub_close(hub);
	return r < 0;
}
