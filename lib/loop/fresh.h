/* SPDX-License-Identifier: MIT */
/*
 * The timeouts that were set since the loop read its clock. A deadline by delay counts from the
 * last reading. The next reading moves it on by the time between the two. If the filing is then too
 * late, the place of the timeout is put into the list, which each turn files. So a timeout that is
 * set and stopped in one turn is never filed.
 */
#ifndef TIMERHUB_FRESH_H
#define TIMERHUB_FRESH_H

#include "loop/loop.h"

/* A clock was read: move the timeouts set by delay on to it. Delays count from `now_ns` now. */
void fresh_move_on(struct timerhub_loop *loop, uint64_t now_ns);

/* Put the timeout's place into the list of those that fresh_file() looks at. */
void fresh_list(struct timerhub_loop *loop, struct timerhub_timeout *timeout);

/* Take the timeout out of those that were set by delay. */
void fresh_forget(struct timerhub_loop *loop, struct timerhub_timeout *timeout);

/* File the timeouts of the list whose deadlines are earlier than their filings. */
void fresh_file(struct timerhub_loop *loop);

#endif
