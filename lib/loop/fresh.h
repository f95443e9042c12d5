/* SPDX-License-Identifier: MIT */
/*
 * Keeps the timeouts that were set by delay since the loop last read its clock. Their deadlines
 * count from that reading. The next reading adds the time between the two readings to each
 * deadline. If the timeout is then scheduled too late, its place is put into the list. Each turn
 * schedules the timeouts of the list. So a timeout that is set and stopped in one turn is never
 * scheduled.
 */
#ifndef TIMERHUB_FRESH_H
#define TIMERHUB_FRESH_H

#include "loop/loop.h"

/*
 * After a reading of the clock, add the passed time to the deadlines that were set by delay. From
 * now on delays count from `now_ns`.
 */
void fresh_move_on(struct timerhub_loop *loop, uint64_t now_ns);

/* Put the timeout's place into the list that fresh_file() checks. */
void fresh_list(struct timerhub_loop *loop, struct timerhub_timeout *timeout);

/* Remove the timeout from `fresh`. */
void fresh_forget(struct timerhub_loop *loop, struct timerhub_timeout *timeout);

/* Schedule the timeouts of the list that are scheduled too late. */
void fresh_file(struct timerhub_loop *loop);

#endif
