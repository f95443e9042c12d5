/* SPDX-License-Identifier: MIT */
/*
 * The early-wake margin. Waking a thread takes 4 to 40 us on a virtual machine, so the owner asks
 * to be woken that much before a timer is due, and spins for the rest.
 *
 * How much that is, it learns: the margin follows the lateness that one sleep in sixteen exceeds.
 * If a sleep was later than the margin, the margin goes fifteen steps up, else one step down. It
 * thus comes up to 14 us within 40 sleeps, and down again within 500. It errs on the early side
 * because a sleep that ends late also delays the consumer, while one that ends early costs only
 * some spinning.
 */
#ifndef TIMERHUB_EARLY_WAKE_H
#define TIMERHUB_EARLY_WAKE_H

#include "base/bits.h"

/* The largest margin, and so the longest spin, unless the hub's spin_ns is longer. */
#define EARLY_WAKE_MAX_NS 16000
#define EARLY_WAKE_DOWN_NS 32
#define EARLY_WAKE_UP_NS (15 * EARLY_WAKE_DOWN_NS)

struct early_wake {
	uint64_t ns; /* the margin; 0 before the first sleep */
};

/* Learns from a sleep that ended `late_ns` after the time that was asked for. */
static inline void early_wake_learn(struct early_wake *early_wake, uint64_t late_ns)
{
	if (late_ns > early_wake->ns)
		early_wake->ns = u64_min(early_wake->ns + EARLY_WAKE_UP_NS, EARLY_WAKE_MAX_NS);
	else
		early_wake->ns -= u64_min(early_wake->ns, EARLY_WAKE_DOWN_NS);
}

#endif
