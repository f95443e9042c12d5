/* SPDX-License-Identifier: MIT */
/* Run under valgrind. AUTO must choose ppoll there: a wait in io_uring blocks all other threads. */
#include <stdio.h>
#include <timerhub.h>

int main(void)
{
	struct timerhub_stats stats = { .sleeper = 0 };
	struct timerhub_queue *queue;
	struct timerhub_event event;
	struct timerhub *hub;

	if (timerhub_open(&hub, NULL) < 0 || timerhub_queue_open(hub, &queue, NULL) < 0)
		return 1;
	if (timerhub_stats(hub, &stats) < 0 || stats.sleeper != TIMERHUB_SLEEPER_POLL) {
		printf("the owner sleeps by %u\n", stats.sleeper);
		return 1;
	}
	for (unsigned i = 0; i < 3; i++)
		if (timerhub_after(queue, 20000000, i, NULL) < 0 ||
		    timerhub_wait(queue, &event, 1, UINT64_MAX) != 1)
			return 1;
	timerhub_close(hub);
	return 0;
}
