/* SPDX-License-Identifier: MIT */
/*
 * Checks the invariants of lib/README.md, each a function named in the report, while the owner
 * sleeps or between two advances of a manual hub. Only builds for tests contain it.
 */
#ifndef TESTS_HUB_CHECK_H
#define TESTS_HUB_CHECK_H

#include <stdbool.h>
#include <stdint.h>

struct pair;
struct schedule;
struct timerhub;

/*
 * Some invariants hold only while no thread is inside a call, and one of these only if nobody has
 * armed a timer during the close of a queue, which the contract forbids.
 */
enum hub_callers { HUB_HAS_CALLERS, HUB_HAD_LATE_CALLERS, HUB_HAS_NO_CALLERS };

/* The first broken invariant's name, or NULL. No other thread of the program may run meanwhile. */
const char *hub_check(const struct timerhub *hub, enum hub_callers callers);

/* The same for a schedule, between two calls of it. */
const char *schedule_check(const struct schedule *schedule, uint32_t slots);

bool pair_is_legal(struct pair pair);

#endif
