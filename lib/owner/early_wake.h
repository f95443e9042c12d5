/* SPDX-License-Identifier: MIT */
/*
 * A thread that sleeps until a given time wakes up a little later, 4 to 40 us on a virtual machine.
 * So the owner asks to be woken earlier than it must be, by a margin, and spins for the rest.
 *
 * It learns the margin from its sleeps, such that one sleep in sixteen is later than that. If a
 * sleep was later than the margin, the margin grows by fifteen steps, otherwise it shrinks by one.
 * Thus it grows to 14 us within 40 sleeps, and shrinks again within 500. Sleeps rather end too
 * early than too late, because a late one also delays the consumer of the event, and an early one
 * costs only some spinning.
 */
#ifndef TIMERHUB_EARLY_WAKE_H
#define TIMERHUB_EARLY_WAKE_H

#include "base/bits.h"

/*
 * The largest margin. A margin is how long before a deadline the owner asks to be woken; it spins
 * for the rest of the time. So it never spins longer than this, unless the hub's spin_ns is longer.
 */
#define EARLY_WAKE_MAX_NS 16000
#define EARLY_WAKE_DOWN_NS 32
#define EARLY_WAKE_UP_NS (15 * EARLY_WAKE_DOWN_NS)

struct early_wake {
	uint64_t ns; /* the margin; 0 before the first sleep */
};

/*
 * Adjusts the margin by which the owner asks to be woken early. `late_ns` is by how much the last
 * sleep was too long: if it exceeds the margin, the margin grows, else it shrinks a little.
 */
static inline void early_wake_learn(struct early_wake *early_wake, uint64_t late_ns)
{
	if (late_ns > early_wake->ns)
		early_wake->ns = u64_min(early_wake->ns + EARLY_WAKE_UP_NS, EARLY_WAKE_MAX_NS);
	else
		early_wake->ns -= u64_min(early_wake->ns, EARLY_WAKE_DOWN_NS);
}

#endif
