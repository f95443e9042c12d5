/* SPDX-License-Identifier: MIT */
/*
 * A small program that uses the library, compiled as C11 and as C++17. The program opens a hub,
 * arms a timer, waits for the timer, and prints the library's version.
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
