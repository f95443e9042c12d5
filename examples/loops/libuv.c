/* SPDX-License-Identifier: MIT */
/*
 * timerhub in a libuv loop: reminders, see reminders.h. Usage: libuv [FILE...]
 *
 * uv_poll_t watches the queue's fd. libuv does not close it, which is right: it is the queue's.
 */
#include <stdio.h>
#include <uv.h>

#include "reminders.h"

static void readable(uv_poll_t *poll, int status, int events)
{
	(void)events;
	if (status < 0 || timerhub_dispatch(poll->data, REMINDERS_BATCH) < 0 || !reminders_left())
		uv_close((uv_handle_t *)poll, NULL); /* the loop ends with its last handle */
}

int main(int argc, char **argv)
{
	struct timerhub_queue *queue = reminders_open(argc - 1, argv + 1);
	uv_loop_t *loop = uv_default_loop();
	uv_poll_t poll;

	poll.data = queue;
	int r = uv_poll_init(loop, &poll, timerhub_queue_fd(queue));
	if (r == 0)
		r = uv_poll_start(&poll, UV_READABLE, readable);
	if (r == 0)
		r = uv_run(loop, UV_RUN_DEFAULT);
	if (r != 0)
		fprintf(stderr, "libuv: %s\n", uv_strerror(r));
	uv_loop_close(loop);
	return reminders_close();
}
