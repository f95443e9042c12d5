/* SPDX-License-Identifier: MIT */
/*
 * Use of a hub while faults are injected: one thread arms, re-arms and cancels at random, another
 * thread takes events. In the end each timer was cancelled, or delivered once and not before its
 * deadline.
 */
#ifndef TESTS_LIFE_H
#define TESTS_LIFE_H

#include "rig.h"

struct life;

/* Starts `timers` timers, with deadlines up to `span_ns` away, armed over the same time. */
struct life *life_begin(struct rig *rig, unsigned timers, uint64_t span_ns);

/* Waits for the last timer, and judges. */
void life_end(struct life *life);

void life_live(struct rig *rig, unsigned timers, uint64_t span_ns);

#endif
