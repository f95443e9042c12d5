/* SPDX-License-Identifier: MIT */
/*
 * A program's io_uring polls a queue's eventfd; C11 and C++17, liburing 2.3, Linux 5.13. Manual:
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
 * A multishot poll of the queue; set user_data afterwards. After each completion, perhaps for
 * nothing, dispatch or drain: what these leave completes again.
 */
static inline void timerhub_uring_prep(struct io_uring_sqe *sqe, const struct timerhub_queue *queue)
{
	io_uring_prep_poll_multishot(sqe, timerhub_queue_fd(queue), POLLIN);
}

/*
 * The poll's last completion. `res` from 0 on: the completion queue was full, prepare again, as
 * with -ENOMEM. -ECANCELED: by the program; -EBADF: NULL or closed; -EINVAL: before Linux 5.13.
 */
static inline bool timerhub_uring_ended(const struct io_uring_cqe *cqe)
{
	return (cqe->flags & IORING_CQE_F_MORE) == 0;
}

#ifdef __cplusplus
}
#endif

#endif
