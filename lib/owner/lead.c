/* SPDX-License-Identifier: MIT */
/*
 * See lead.h. Every sleep ends late by what it takes to wake a thread: 10 to 16 us at the least on
 * a virtual machine. The owner asks to be woken that much earlier, and spins for what is left.
 *
 * The lead follows the lateness that one sleep in eight does not reach: one step up with each sleep
 * that was later, seven down with each that was not. It comes up to 14 us within 300 sleeps, and
 * goes down by as much within 40. In any N sleeps from the first on, at most N/8 end more than
 * LEAD_DOWN_NS before the instant.
 *
 * Tried in its place: the least lateness of the last hundreds of sleeps. One sleep on a processor
 * that had not halted spoils it for hundreds of others, and p50 fell by 20 us where this took 24.
 */
#include "owner/lead.h"

#include "base/bits.h"

void lead_learn(struct lead *lead, uint64_t late_ns)
{
	if (late_ns > lead->ns)
		lead->ns = u64_min(lead->ns + LEAD_UP_NS, LEAD_MAX_NS);
	else
		lead->ns -= u64_min(lead->ns, LEAD_DOWN_NS);
}
