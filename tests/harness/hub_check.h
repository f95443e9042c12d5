/* SPDX-License-Identifier: MIT */
/*
 * Checks the invariants of lib/README.md, by one function for each, whose name the report contains.
 * Call it while the owner sleeps, or between two advances of a manual hub. Only builds for tests
 * contain it.
 */
#ifndef TESTS_HUB_CHECK_H
#define TESTS_HUB_CHECK_H

#include <stdbool.h>
#include <stdint.h>

struct pair;
struct schedule;
struct timerhub;

/*
 * Which threads may be inside calls. Some invariants hold only if no thread is. One of these also
 * needs that nobody has armed a timer while its queue was being closed, which the contract forbids.
 */
enum hub_callers { HUB_HAS_CALLERS, HUB_HAD_LATE_CALLERS, HUB_HAS_NO_CALLERS };

/*
 * Returns the name of the first invariant that is broken, or NULL. No other thread of the program
 * may run meanwhile.
 */
const char *hub_check(const struct timerhub *hub, enum hub_callers callers);

/*
 * Returns the name of the first invariant of a schedule that is broken, or NULL. Call it between
 * two calls on the schedule.
 */
const char *schedule_check(const struct schedule *schedule, uint32_t slots);

bool pair_is_legal(struct pair pair);

#endif
