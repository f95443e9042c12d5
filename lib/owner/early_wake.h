/* SPDX-License-Identifier: MIT */
/*
 * Computes the early-wake margin, the time before an instant at which the owner asks the kernel to
 * wake it. Pure. Only the owner uses it.
 */
#ifndef TIMERHUB_EARLY_WAKE_H
#define TIMERHUB_EARLY_WAKE_H

#include <stdint.h>

/* The longest margin. It limits how long the owner spins because of the margin. */
#define EARLY_WAKE_MAX_NS 16000
/*
 * How far one sleep moves the margin: seven steps down or one up. So one sleep in eight is less
 * late than the margin.
 */
#ifndef EARLY_WAKE_UP_NS
#define EARLY_WAKE_UP_NS 64
#endif
#define EARLY_WAKE_DOWN_NS (7 * EARLY_WAKE_UP_NS)

struct early_wake {
	uint64_t ns; /* 0 at first, when no sleep has been measured */
};

/* Adjust the margin: a sleep ended `late_ns` after the time given to the kernel. */
void early_wake_learn(struct early_wake *early_wake, uint64_t late_ns);

#endif
