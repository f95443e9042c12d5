/* SPDX-License-Identifier: MIT */
/*
 * Life on a hub while something goes wrong: one thread arms, re-arms and cancels at random, another
 * takes. At the end each timer was delivered once, not before its deadline, or cancelled.
 */
#ifndef TESTS_LIFE_H
#define TESTS_LIFE_H

#include "rig.h"

struct life;

/* `timers` of them, with deadlines up to `span_ns` away, armed over as long a time. */
struct life *life_begin(struct rig *rig, unsigned timers, uint64_t span_ns);

/* Waits for the last of them, and judges. */
void life_end(struct life *life);

void life_live(struct rig *rig, unsigned timers, uint64_t span_ns);

#endif
