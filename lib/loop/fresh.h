/* SPDX-License-Identifier: MIT */
/*
 * Keeps the timeouts that were set by delay since the loop last read its clock. The deadlines of
 * these timeouts count from the last reading. The next reading of the clock adds the time between
 * the two readings to each deadline. If a timeout's schedule entry is later than its deadline, the
 * timeout's place is put into the list. Each turn schedules the timeouts of the list. So a timeout
 * that is set and stopped in one turn is never scheduled.
 */
#ifndef TIMERHUB_FRESH_H
#define TIMERHUB_FRESH_H

#include "loop/loop.h"

/*
 * After a reading of the clock, add the passed time to the deadlines that were set by delay. After
 * the call delays count from `now_ns`.
 */
void fresh_move_on(struct timerhub_loop *loop, uint64_t now_ns);

/* Put the timeout's place into the list that fresh_file() checks. */
void fresh_list(struct timerhub_loop *loop, struct timerhub_timeout *timeout);

/* Remove the timeout from `fresh`. */
void fresh_forget(struct timerhub_loop *loop, struct timerhub_timeout *timeout);

/* Schedule the timeouts of the list that are scheduled too late. */
void fresh_file(struct timerhub_loop *loop);

#endif
