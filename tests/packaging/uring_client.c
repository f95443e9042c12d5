/* SPDX-License-Identifier: MIT */
/*
 * A small program that uses io_uring, compiled as C11 and as C++17. The program polls a queue by an
 * io_uring of its own. If the kernel refuses io_uring, the program does not poll. The program
 * prints the library's version.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* liburing.h needs _GNU_SOURCE in plain C11 */
#endif
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <timerhub_uring.h>

/* Arms a timer, and waits in io_uring until the queue has the timer's event. */
static bool timer_comes(struct io_uring *ring, struct timerhub_queue *queue)
{
	struct timerhub_event event;
	struct io_uring_cqe *cqe;
	bool good;

	timerhub_uring_prep(io_uring_get_sqe(ring), queue);
	if (timerhub_after(queue, 1000000, 42, NULL) < 0 || io_uring_submit(ring) != 1 ||
	    io_uring_wait_cqe(ring, &cqe) < 0)
		return false;
	good = cqe->res == POLLIN && !timerhub_uring_ended(cqe);
	io_uring_cqe_seen(ring, cqe);
	return good && timerhub_drain(queue, &event, 1) == 1 && event.data == 42;
}

int main(void)
{
	struct timerhub *hub;
	struct timerhub_queue *queue;
	struct io_uring ring;
	bool good = timerhub_open(&hub, NULL) == 0 && timerhub_queue_open(hub, &queue, NULL) == 0;
	int result = io_uring_queue_init(4, &ring, 0);

	if (result == 0) {
		good = good && timer_comes(&ring, queue);
		io_uring_queue_exit(&ring);
	} else {
		fprintf(stderr, "io_uring: %s\n", strerror(-result));
		good = good && (result == -EPERM || result == -ENOSYS);
	}
	timerhub_close(hub);
	puts(good ? timerhub_version() : "failed");
	return good ? 0 : 1;
}
