/* SPDX-License-Identifier: MIT */
/*
 * The lead is the early-wake margin: how long before an instant the owner asks the kernel to wake
 * it. Pure; only the owner uses it.
 */
#ifndef TIMERHUB_LEAD_H
#define TIMERHUB_LEAD_H

#include <stdint.h>

/* The longest margin. It limits how long the owner spins because of the margin. */
#define LEAD_MAX_NS 16000
/*
 * How far one sleep moves the margin: seven steps down or one up. So one sleep in eight is less
 * late than the margin.
 */
#ifndef LEAD_UP_NS
#define LEAD_UP_NS 64
#endif
#define LEAD_DOWN_NS (7 * LEAD_UP_NS)

struct lead {
	uint64_t ns; /* 0 at first, when no sleep has been measured */
};

/* Adjust the margin: a sleep ended `late_ns` after the time given to the kernel. */
void lead_learn(struct lead *lead, uint64_t late_ns);

#endif
