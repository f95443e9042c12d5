/* SPDX-License-Identifier: MIT */
/* The smallest program with a hub. Compile it with $(pkg-config --cflags --libs timerhub). */
#include <stdio.h>
#include <timerhub.h>

int main(void)
{
	struct timerhub *hub;
	struct timerhub_queue *queue;
	struct timerhub_event event;

	if (timerhub_open(&hub, NULL) < 0 || timerhub_queue_open(hub, &queue, NULL) < 0 ||
	    timerhub_after(queue, 350000000, 7, NULL) < 0 || /* in 350 ms, with 7 as its data */
	    timerhub_wait(queue, &event, 1, UINT64_MAX) != 1)
		return 1;
	printf("hello from timer %d\n", (int)event.data);
	timerhub_close(hub);
	return 0;
}
