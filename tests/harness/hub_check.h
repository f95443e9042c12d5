/* SPDX-License-Identifier: MIT */
/*
 * The invariants of lib/README.md as code, for builds for tests. hub_check() checks a hub while its
 * owner sleeps, or a manual hub between two advances. Each invariant is a function, and hub_check()
 * reports a broken invariant by the function's name. tests/unit/test_hub_check.c breaks each of
 * them.
 */
#ifndef TESTS_HUB_CHECK_H
#define TESTS_HUB_CHECK_H

#include <stdbool.h>
#include <stdint.h>

struct pair;
struct schedule;
struct timerhub;

/*
 * The threads that may be inside a call during the check. Some invariants hold only while no thread
 * is inside a call.
 */
enum hub_callers { HUB_HAS_CALLERS, HUB_HAS_NO_CALLERS };

/*
 * Returns the name of the first broken invariant, or NULL. The owner must sleep. No other thread
 * may run during the check.
 */
const char *hub_check(const struct timerhub *hub, enum hub_callers callers);

/*
 * Returns the name of a schedule's first broken invariant, or NULL. Call it between two calls of
 * the schedule.
 */
const char *schedule_check(const struct schedule *schedule, uint32_t slots);

/* Returns whether a slot can have this pair. */
bool pair_is_legal(struct pair pair);

#endif
