/* SPDX-License-Identifier: MIT */
/*
 * timerhub in a program on io_uring: the program's ring polls a queue's eventfd. The header is for
 * C11 and C++17. The header needs liburing 2.3 or later, and the poll needs Linux 5.13. The library
 * makes no call to the ring. Manual: timerhub_uring(3).
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
 * Prepare a multishot poll of the queue's eventfd, and leave user_data as it is. The program sets
 * user_data after this call, as with liburing's own prepare calls. The poll completes whenever the
 * eventfd is made readable. A poll that is submitted while events wait completes at once. After
 * each completion call timerhub_dispatch() or timerhub_drain(). A completion may come without an
 * event. If timerhub_dispatch() or timerhub_drain() stops at its `max` and leaves events, the poll
 * completes again.
 */
static inline void timerhub_uring_prep(struct io_uring_sqe *sqe, const struct timerhub_queue *queue)
{
	io_uring_prep_poll_multishot(sqe, timerhub_queue_fd(queue), POLLIN);
}

/*
 * Returns whether the poll of this completion has ended. If res >= 0, the completion queue was
 * full: prepare the poll again. If res < 0, the poll was cancelled or refused. -ECANCELED: the
 * program cancelled the poll. -EBADF: the queue is NULL, or was closed before the poll was
 * submitted. -EINVAL: the kernel is older than Linux 5.13. -ENOMEM: prepare the poll again.
 */
static inline bool timerhub_uring_ended(const struct io_uring_cqe *cqe)
{
	return (cqe->flags & IORING_CQE_F_MORE) == 0;
}

#ifdef __cplusplus
}
#endif

#endif
