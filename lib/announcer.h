/* SPDX-License-Identifier: MIT */
/*
 * Tells a caller's own io_uring of something, as a completion there: what an eventfd is to a
 * poller. Any number of threads may post at once, and none waits for another.
 */
#ifndef TIMERHUB_ANNOUNCER_H
#define TIMERHUB_ANNOUNCER_H

#include "atomic.h"

struct announcer;

/*
 * Open an announcer that posts completions with this user data to the ring that `ring_fd` names,
 * and keeps that ring alive. Returns 0; -EBADF; -EINVAL: not an io_uring; -EOPNOTSUPP: the kernel
 * cannot post to another ring; or the negative errno with which the kernel refused a ring of our
 * own.
 */
int announcer_open(struct announcer **ret_announcer, int ring_fd, uint64_t user_data);
void announcer_close(struct announcer *announcer);

/* Post a completion. Its result is `count`, or that of a concurrent post. Signal-safe. */
void announcer_post(struct announcer *announcer, unsigned count);

#endif
