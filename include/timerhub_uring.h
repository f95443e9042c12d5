/* SPDX-License-Identifier: MIT */
/*
 * Helps a program whose event loop is an io_uring: the program polls a queue's eventfd in its own
 * ring, and gets a completion when events wait. This needs liburing 2.3 and Linux 5.13. The header
 * can be used from C11 and C++17. The manual is timerhub_uring(3).
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
 * Prepares a request that polls the queue's eventfd again and again (a multishot poll). Set its
 * user_data afterwards. After each completion take the events, of which there may be none.
 */
static inline void timerhub_uring_prep(struct io_uring_sqe *sqe, const struct timerhub_queue *queue)
{
	io_uring_prep_poll_multishot(sqe, timerhub_queue_fd(queue), POLLIN);
}

/*
 * Returns true if this completion is the last one of the poll. Prepare the poll again if you still
 * want it. The completion's `res` says why it has ended:
 *   0 or more: the completion queue was full.
 *   -ENOMEM: memory was short.
 *   -ECANCELED: the program cancelled the poll.
 *   -EBADF: the queue is NULL or was closed.
 *   -EINVAL: the kernel is older than Linux 5.13.
 */
static inline bool timerhub_uring_ended(const struct io_uring_cqe *cqe)
{
	return (cqe->flags & IORING_CQE_F_MORE) == 0;
}

#ifdef __cplusplus
}
#endif

#endif
