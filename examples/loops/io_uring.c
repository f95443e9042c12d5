/* SPDX-License-Identifier: MIT */
/*
 * timerhub in an io_uring loop. It prints reminders, see reminders.h. Usage: io_uring [FILE...]
 *
 * A multishot poll in the ring watches the timerhub loop's fd. If the timerhub loop has no hub, the
 * program can do without the poll, and wait for as long as timerhub_loop_timeout() says.
 */
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "reminders.h"

static int requests = 1; /* how many the ring has; a server counts its own too */

static int watch(struct io_uring *ring, int fd)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (sqe == NULL)
		return -EBUSY;
	io_uring_prep_poll_multishot(sqe, fd, POLLIN);
	return 0;
}

/*
 * Handles the completions of the ring; a real program handles its own here as well, before the
 * turn. Returns how many there were, or a negative errno.
 */
static int complete(struct io_uring *ring, int fd)
{
	struct io_uring_cqe *cqe;
	int count = 0, r = 0;

	for (; r == 0 && io_uring_peek_cqe(ring, &cqe) == 0; count++) {
		const int error = cqe->res < 0 ? cqe->res : 0;
		const int ended = (cqe->flags & IORING_CQE_F_MORE) == 0;
		io_uring_cqe_seen(ring, cqe);
		r = error < 0 ? error : ended ? watch(ring, fd) : 0;
	}
	return r < 0 ? r : count;
}

/*
 * Handles all ready completions. With IORING_SETUP_DEFER_TASKRUN the kernel shows only some 20 at
 * each call, so the others must be fetched before the turn; in other rings complete() is enough.
 * Completions come in order, so after `requests` of them each ready request has been handled.
 */
static int complete_all(struct io_uring *ring, int fd)
{
	int r = complete(ring, fd);

	for (int left = requests; r >= 0 && left > 0; left -= r) {
		r = io_uring_get_events(ring);
		if (r < 0 || io_uring_cq_ready(ring) == 0)
			break;
		r = complete(ring, fd);
	}
	return r < 0 ? r : 0;
}

static int run(struct io_uring *ring, struct timerhub_loop *loop)
{
	const int fd = timerhub_loop_fd(loop);
	struct io_uring_cqe *cqe;
	int r = watch(ring, fd);

	while (r == 0 || r == -EINTR) {
		/* The turn must come immediately before the program waits for the ring. */
		r = timerhub_loop_turn(loop);
		if (r < 0 || !reminders_left())
			return r;
		r = io_uring_submit_and_wait_timeout(ring, &cqe, 1, NULL, NULL);
		if (r >= 0 ||
		    r == -EINTR) /* completions can be there even if the wait was interrupted */
			r = complete_all(ring, fd);
	}
	return r;
}

int main(int argc, char **argv)
{
	struct timerhub_loop *loop = reminders_open(argc - 1, argv + 1);
	struct io_uring ring;
	int r = io_uring_queue_init(8, &ring, 0);

	if (r == 0) {
		r = run(&ring, loop);
		io_uring_queue_exit(&ring);
	}
	if (r < 0)
		fprintf(stderr, "io_uring: %s\n", strerror(-r));
	return reminders_close();
}
