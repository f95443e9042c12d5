/* SPDX-License-Identifier: MIT */
/*
 * Puts a load on a hub while a test injects faults. One thread arms, re-arms and cancels at random,
 * and another thread takes events. At the end of the load, each timer must have been either
 * cancelled, or delivered once and not before its deadline.
 */
#ifndef TESTS_CHECKED_WORKLOAD_H
#define TESTS_CHECKED_WORKLOAD_H

#include "rig.h"

struct life;

/*
 * Starts the load. The load arms `timers` timers in the course of `span_ns` nanoseconds, with
 * delays of up to `span_ns`.
 */
struct life *life_begin(struct rig *rig, unsigned timers, uint64_t span_ns);

/* Waits until the last timer has ended, and checks all timers of the load. */
void life_end(struct life *life);

void life_live(struct rig *rig, unsigned timers, uint64_t span_ns);

#endif
