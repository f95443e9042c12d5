/* SPDX-License-Identifier: MIT */
/*
 * Schedules timeouts, and checks the timeouts whose schedule entry has come up. A schedule entry
 * says when to check a place. A schedule entry is never later than the deadline of the place's
 * timeout.
 */
#ifndef TIMERHUB_SCHEDULING_H
#define TIMERHUB_SCHEDULING_H

#include "loop/loop.h"

/*
 * Schedule a timeout that is set, and remove its earlier entry: on the grid of this shift, or
 * exactly if its deadline is too near for that grid.
 */
void loop_file(struct timerhub_loop *loop, struct timerhub_timeout *timeout, unsigned shift);

/*
 * Check the place, whose entry at `at_ns` was taken out of the schedule. If its timeout is due now
 * and no other timeout is due before, returns the timeout. If the timeout may not expire yet, the
 * call schedules it again if it is set, and returns NULL.
 */
struct timerhub_timeout *loop_recheck(struct timerhub_loop *loop, uint32_t place, uint64_t at_ns);

/*
 * Correct the earliest schedule entries, and compute when the loop must wake, before it blocks. If
 * the earliest entry is exact, and its timeout has moved or was stopped since, schedule the timeout
 * again or remove the entry. An entry on the grid stays, because other timeouts share its time.
 * Checks at most 256 entries.
 */
void loop_rest(struct timerhub_loop *loop);

#endif
