/* SPDX-License-Identifier: MIT */
/*
 * The timeouts that were set since the loop read its clock. Those set by delay count from the last
 * reading until the next one: then they move on by the time between. After that they are listed,
 * and filed when the turn files. So a timeout that is set and stopped in one turn is never filed.
 */
#ifndef TIMERHUB_FRESH_H
#define TIMERHUB_FRESH_H

#include "loop.h"

/* A clock was read: move the timeouts set by delay on to it. Delays count from `now_ns` now. */
void fresh_move_on(struct timerhub_loop *loop, uint64_t now_ns);

/* Put the timeout's place into the list of those that fresh_file() looks at. */
void fresh_list(struct timerhub_loop *loop, struct timerhub_timeout *timeout);

/* Take the timeout out of those that were set by delay. */
void fresh_forget(struct timerhub_loop *loop, struct timerhub_timeout *timeout);

/* File the timeouts of the list whose deadlines are earlier than their filings. */
void fresh_file(struct timerhub_loop *loop);

#endif
