/* SPDX-License-Identifier: MIT */
/*
 * The margin by which the owner asks to be woken early, and then spins: waking a thread takes 10 to
 * 16 us on a virtual machine. It tracks the 12.5th percentile of the sleeps' lateness: one step up
 * if a sleep is later than the margin, seven down if not; up to 14 us within 300 sleeps, down
 * within 40. Of the first N sleeps at most N/8 end more than EARLY_WAKE_DOWN_NS too early. The
 * least of the last hundreds, tried before, was spoilt by single sleeps on a processor that had not
 * halted (20 us won at the median, now 24).
 */
#ifndef TIMERHUB_EARLY_WAKE_H
#define TIMERHUB_EARLY_WAKE_H

#include "base/bits.h"

/* also the longest spin, unless spin_ns is longer */
#define EARLY_WAKE_MAX_NS 16000
/* step: one up, seven down */
#ifndef EARLY_WAKE_UP_NS
#define EARLY_WAKE_UP_NS 64
#endif
#define EARLY_WAKE_DOWN_NS (7 * EARLY_WAKE_UP_NS)

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
