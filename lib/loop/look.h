/* SPDX-License-Identifier: MIT */
/*
 * Files timeouts, and looks at timeouts whose filing has come up. A filing says when to look at a
 * place. It is never later than the deadline of the timeout that has the place.
 */
#ifndef TIMERHUB_LOOK_H
#define TIMERHUB_LOOK_H

#include "loop/loop.h"

/*
 * File a timeout that is set, wherever it was filed before: on the grid of this shift, or exactly
 * if its deadline is too near for that grid.
 */
void loop_file(struct timerhub_loop *loop, struct timerhub_timeout *timeout, unsigned shift);

/*
 * The place has been taken out of the schedule, where it was filed under `at_ns`. Returns its
 * timeout if that is due now and no other is due before. Else files it again if it is set, or
 * nowhere if it is not, and returns NULL.
 */
struct timerhub_timeout *loop_look(struct timerhub_loop *loop, uint32_t place, uint64_t at_ns);

/*
 * Correct the first filings and tell the first instant, before the loop blocks until that. If the
 * first filing is exact, and its timeout has moved or was stopped since, the timeout is filed
 * again, or nowhere. A filing on the grid is left: other timeouts share its instant. Looks at no
 * more than 256 filings.
 */
void loop_rest(struct timerhub_loop *loop);

#endif
