/* SPDX-License-Identifier: MIT */
/*
 * Helps a program on io_uring to use timerhub: the program's ring polls the eventfd of a queue. The
 * header is for C11 and C++17, and needs liburing 2.3 or later. The multishot poll of this header
 * needs Linux 5.13. The library libtimerhub does not use the program's ring. Manual:
 * timerhub_uring(3).
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
 * Prepare a multishot poll of the queue's eventfd in `sqe`, and leave `user_data` of `sqe`
 * unchanged. The program sets user_data after this call, as after liburing's own prepare calls. The
 * poll completes whenever the eventfd is made readable. If the queue has events when the program
 * submits the poll, the poll completes at once. After each completion call timerhub_dispatch() or
 * timerhub_drain(). The poll may complete although the queue has no event. If timerhub_dispatch()
 * or timerhub_drain() leaves events, the poll completes again.
 */
static inline void timerhub_uring_prep(struct io_uring_sqe *sqe, const struct timerhub_queue *queue)
{
	io_uring_prep_poll_multishot(sqe, timerhub_queue_fd(queue), POLLIN);
}

/*
 * Returns true if `cqe` is the last completion of the poll. If `res` of this `cqe` is 0 or more,
 * the completion queue was full. The program must then prepare the poll again. A negative `res`
 * means that the poll was cancelled or refused. -ECANCELED: the program cancelled the poll. -EBADF:
 * the queue is NULL, or was closed before the poll was submitted. -EINVAL: the kernel is older than
 * Linux 5.13. -ENOMEM: the kernel had no memory, and the program must prepare the poll again.
 */
static inline bool timerhub_uring_ended(const struct io_uring_cqe *cqe)
{
	return (cqe->flags & IORING_CQE_F_MORE) == 0;
}

#ifdef __cplusplus
}
#endif

#endif
