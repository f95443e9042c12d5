/* SPDX-License-Identifier: MIT */
/*
 * The margin by which the owner asks to be woken early, and then spins: waking a thread takes 4 to
 * 40 us on a virtual machine. It tracks the sleeps' lateness that one in sixteen exceeds: fifteen
 * steps up if a sleep is later than the margin, one down if not; up to 14 us within 40 sleeps, down
 * within 500. A late sleep delays the consumer's wake-up: where seven in eight were late, the
 * median was 11 us in place of a single hop's 8.
 */
#ifndef TIMERHUB_EARLY_WAKE_H
#define TIMERHUB_EARLY_WAKE_H

#include "base/bits.h"

/* also the longest spin, unless spin_ns is longer */
#define EARLY_WAKE_MAX_NS 16000
#define EARLY_WAKE_DOWN_NS 32
#define EARLY_WAKE_UP_NS (15 * EARLY_WAKE_DOWN_NS)

struct early_wake {
	uint64_t ns; /* margin, or 0 before the first sleep */
};

/* After a sleep that ended `late_ns` after the time asked for. */
static inline void early_wake_learn(struct early_wake *early_wake, uint64_t late_ns)
{
	if (late_ns > early_wake->ns)
		early_wake->ns = u64_min(early_wake->ns + EARLY_WAKE_UP_NS, EARLY_WAKE_MAX_NS);
	else
		early_wake->ns -= u64_min(early_wake->ns, EARLY_WAKE_DOWN_NS);
}

#endif
