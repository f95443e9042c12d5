/* SPDX-License-Identifier: MIT */
/*
 * A load during faults: one thread arms, re-arms and cancels at random, another takes. In the end
 * each timer was cancelled, or delivered once and not early.
 */
#ifndef TESTS_CHECKED_WORKLOAD_H
#define TESTS_CHECKED_WORKLOAD_H

#include "rig.h"

/*
 * Arms `timers` over `span_ns`, with delays of up to `span_ns`, waits for the last, and checks all.
 */
void life_live(struct rig *rig, unsigned timers, uint64_t span_ns);

/* The owner sleeps without a wake-up and without processor time. */
void owner_rests(struct timerhub *hub);
/* The kernel refuses its sleep, so it naps. */
void owner_only_naps(struct timerhub *hub);

#endif
