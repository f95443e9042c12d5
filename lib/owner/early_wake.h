/* SPDX-License-Identifier: MIT */
/*
 * Computes the early-wake margin. A sleep ends late, because waking a thread takes time: on a
 * virtual machine at least 10 to 16 us. The owner therefore asks the kernel for a wake-up that is
 * earlier by the margin, and spins until the timer's instant. Only the owner uses this file.
 *
 * The margin tracks the 12.5th percentile of the lateness of sleeps. If a sleep ends later than the
 * margin, the margin grows by one step. After any other sleep the margin shrinks by seven steps.
 * The margin can grow to 14 us within 300 sleeps, and can shrink by 14 us within 40 sleeps. Of the
 * first N sleeps, for every N, at most N/8 end more than EARLY_WAKE_DOWN_NS before the instant.
 *
 * An earlier design used the least lateness of the last hundreds of sleeps as the margin. One sleep
 * on a processor that has not halted makes the least lateness too small for hundreds of sleeps.
 * With the earlier design the median lateness fell by 20 us, with the percentile by 24 us.
 */
#ifndef TIMERHUB_EARLY_WAKE_H
#define TIMERHUB_EARLY_WAKE_H

#include "base/bits.h"

/* The longest early-wake margin, which limits how long the owner spins because of the margin. */
#define EARLY_WAKE_MAX_NS 16000
/* The step of the margin: a late sleep raises it by one step, another sleep lowers it by seven. */
#ifndef EARLY_WAKE_UP_NS
#define EARLY_WAKE_UP_NS 64
#endif
#define EARLY_WAKE_DOWN_NS (7 * EARLY_WAKE_UP_NS)

struct early_wake {
	uint64_t ns; /* the margin; 0 before the first sleep */
};

/* Adjust the margin after a sleep that ended `late_ns` after the time given to the kernel. */
static inline void early_wake_learn(struct early_wake *early_wake, uint64_t late_ns)
{
	if (late_ns > early_wake->ns)
		early_wake->ns = u64_min(early_wake->ns + EARLY_WAKE_UP_NS, EARLY_WAKE_MAX_NS);
	else
		early_wake->ns -= u64_min(early_wake->ns, EARLY_WAKE_DOWN_NS);
}

#endif
