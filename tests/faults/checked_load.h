/* SPDX-License-Identifier: MIT */
/*
 * A load on a hub while faults are injected. One thread arms, re-arms and cancels at random, and
 * another thread takes events. In the end each timer was cancelled, or delivered once and not
 * before its deadline.
 */
#ifndef TESTS_CHECKED_LOAD_H
#define TESTS_CHECKED_LOAD_H

#include "rig.h"

struct life;

/*
 * Starts the load. The load arms `timers` timers in the course of `span_ns`, with deadlines up to
 * `span_ns` away.
 */
struct life *life_begin(struct rig *rig, unsigned timers, uint64_t span_ns);

/* Waits for the last timer, and checks all timers. */
void life_end(struct life *life);

void life_live(struct rig *rig, unsigned timers, uint64_t span_ns);

#endif
