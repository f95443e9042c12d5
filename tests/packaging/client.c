/* SPDX-License-Identifier: MIT */
/*
 * The smallest program of a user, in C11 and in C++17. The program opens a hub, arms a timer, waits
 * for it, and prints the version.
 */
#include <stdio.h>
#include <timerhub.h>

static int timer_comes(struct timerhub *hub)
{
	struct timerhub_queue *queue;
	struct timerhub_event event;

	return timerhub_queue_open(hub, &queue, NULL) == 0 &&
	       timerhub_after(queue, 1000000, 42, NULL) == 0 &&
	       timerhub_wait(queue, &event, 1, UINT64_MAX) == 1 && event.data == 42;
}

int main(void)
{
	struct timerhub *hub;

	if (timerhub_open(&hub, NULL) < 0)
		return 1;
	const int good = timer_comes(hub);
	timerhub_close(hub);
	puts(good ? timerhub_version() : "failed");
	return good ? 0 : 1;
}
