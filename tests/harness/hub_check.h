/* SPDX-License-Identifier: MIT */
/*
 * Checks the invariants that lib/README.md lists. Only builds for tests contain the checks.
 * hub_check() checks a hub while its owner sleeps, or a manual hub between two advances. Each
 * invariant is a function. hub_check() reports a broken invariant by the function's name.
 */
#ifndef TESTS_HUB_CHECK_H
#define TESTS_HUB_CHECK_H

#include <stdbool.h>
#include <stdint.h>

struct pair;
struct schedule;
struct timerhub;

/*
 * Says whether threads may be inside a call of the hub during the check. Some invariants hold only
 * while no thread is inside a call of the hub.
 */
enum hub_callers { HUB_HAS_CALLERS, HUB_HAS_NO_CALLERS };

/*
 * Returns the name of the first broken invariant of the hub, or NULL. During the check the owner
 * must sleep. No other thread of the program may run during the check.
 */
const char *hub_check(const struct timerhub *hub, enum hub_callers callers);

/*
 * Returns the name of the first broken invariant of a schedule, or NULL. The caller calls
 * schedule_check() between two calls of the schedule.
 */
const char *schedule_check(const struct schedule *schedule, uint32_t slots);

/* Returns whether a slot can have this pair (deadline and state). */
bool pair_is_legal(struct pair pair);

#endif
