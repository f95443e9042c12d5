/* SPDX-License-Identifier: MIT */
/*
 * See early_wake.h. Every sleep ends late by the time that the wake-up of a thread takes: at least
 * 10 to 16 us on a virtual machine. The owner asks the kernel to wake it earlier by the margin, and
 * spins until the instant.
 *
 * The margin tracks the 12.5th percentile of the lateness of sleeps. After a sleep that was later
 * than the margin, the margin grows by one step; after any other sleep it shrinks by seven. It
 * reaches 14 us within 300 sleeps, and shrinks by 14 us within 40. In any N sleeps from the first
 * on, at most N/8 end more than EARLY_WAKE_DOWN_NS before the instant.
 *
 * The least lateness of the last hundreds of sleeps was tried instead. One sleep on a processor
 * that had not halted spoils the minimum for hundreds of sleeps. The minimum lowered p50 by
 * 20 us, the margin lowers it by 24.
 */
#include "owner/early_wake.h"

#include "base/bits.h"

void early_wake_learn(struct early_wake *early_wake, uint64_t late_ns)
{
	if (late_ns > early_wake->ns)
		early_wake->ns = u64_min(early_wake->ns + EARLY_WAKE_UP_NS, EARLY_WAKE_MAX_NS);
	else
		early_wake->ns -= u64_min(early_wake->ns, EARLY_WAKE_DOWN_NS);
}
