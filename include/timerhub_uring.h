/* SPDX-License-Identifier: MIT */
/*
 * For a program whose event loop is an io_uring: it polls a queue's eventfd in its own ring, and
 * gets a completion when events wait. Needs liburing 2.3 and Linux 5.13; C11 and C++17. The manual
 * is timerhub_uring(3).
 */
#ifndef TIMERHUB_URING_H
#define TIMERHUB_URING_H

#include <liburing.h>
#include <poll.h>
#include <stdbool.h>
#include <timerhub.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Prepares a multishot poll of the queue's eventfd. Set the request's user_data afterwards. Call
 * timerhub_dispatch() or timerhub_drain() after each completion. There can be nothing to take then;
 * and if something is left, another completion follows.
 */
static inline void timerhub_uring_prep(struct io_uring_sqe *sqe, const struct timerhub_queue *queue)
{
	io_uring_prep_poll_multishot(sqe, timerhub_queue_fd(queue), POLLIN);
}

/*
 * Returns true if this completion is the last one of the poll, so that it must be prepared again if
 * the program still wants it. The completion's `res` says why it has ended: it is 0 or more if the
 * completion queue was full, -ENOMEM if memory was short, -ECANCELED if the program cancelled it,
 * -EBADF if the queue was NULL or has been closed, and -EINVAL before Linux 5.13.
 */
static inline bool timerhub_uring_ended(const struct io_uring_cqe *cqe)
{
	return (cqe->flags & IORING_CQE_F_MORE) == 0;
}

#ifdef __cplusplus
}
#endif

#endif
