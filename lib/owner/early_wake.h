/* SPDX-License-Identifier: MIT */
/*
 * Computes the early-wake margin. Every sleep ends late by the time that the wake-up of a thread
 * takes: at least 10 to 16 us on a virtual machine. The owner asks the kernel to wake it earlier by
 * the margin, and spins until the instant. Pure. Only the owner uses it.
 *
 * The margin tracks the 12.5th percentile of the lateness of sleeps. After a sleep that was later
 * than the margin, the margin grows by one step; after any other sleep it shrinks by seven. It
 * reaches 14 us within 300 sleeps, and shrinks by 14 us within 40. In any N sleeps from the first
 * on, at most N/8 end more than EARLY_WAKE_DOWN_NS before the instant.
 *
 * The least lateness of the last hundreds of sleeps was tried instead. One sleep on a processor
 * that had not halted spoils the minimum for hundreds of sleeps. The minimum lowered p50 by 20 us,
 * the margin lowers it by 24.
 */
#ifndef TIMERHUB_EARLY_WAKE_H
#define TIMERHUB_EARLY_WAKE_H

#include "base/bits.h"

/* The longest margin. It limits how long the owner spins because of the margin. */
#define EARLY_WAKE_MAX_NS 16000
/* How far one sleep moves the margin: one step up, or seven down. */
#ifndef EARLY_WAKE_UP_NS
#define EARLY_WAKE_UP_NS 64
#endif
#define EARLY_WAKE_DOWN_NS (7 * EARLY_WAKE_UP_NS)

struct early_wake {
	uint64_t ns; /* 0 at first, when no sleep has been measured */
};

/* Adjust the margin: a sleep ended `late_ns` after the time given to the kernel. */
static inline void early_wake_learn(struct early_wake *early_wake, uint64_t late_ns)
{
	if (late_ns > early_wake->ns)
		early_wake->ns = u64_min(early_wake->ns + EARLY_WAKE_UP_NS, EARLY_WAKE_MAX_NS);
	else
		early_wake->ns -= u64_min(early_wake->ns, EARLY_WAKE_DOWN_NS);
}

#endif
