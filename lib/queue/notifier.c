/* SPDX-License-Identifier: MIT */
/*
 *    owner                                consumer
 *   publish in the outbox                clear the eventfd, signalled := 0
 *   signalled = 0? make it 1             read the outbox once more
 *   write to the eventfd
 *
 * All seq_cst: either the owner finds 0 and writes, or the second reading finds the event.
 *
 * The eventfd is cleared first: if the owner signalled between a store of 0 and a later clearing,
 * `signalled` would stay 1 over a cleared eventfd for ever. In this order the owner may write while
 * it is still 1; the eventfd is then readable for nothing, and `rings`, counted before the write,
 * tells the next consumer to clear it: the write may wake a consumer that preempts the owner.
 *
 *   owner                                waiter
 *   publish in the outbox                waiters += 1
 *   waiters > 0: ticket += 2, wake       read the outbox, block while ticket is unchanged
 *
 * `waiters` and the outbox are seq_cst: an owner that sees no waiter is seen by him. A waiter that
 * enters after the wake loads the new ticket, and with it the event, published before.
 *
 * Labels: [ticket] notifier_wake → notifier_wait_enter: carries the reason for the wake.
 */
#include "queue/notifier.h"

#include "base/futex.h"

void notifier_begin(struct notifier *notifier)
{
	/* Relaxed: no other thread uses the notifier yet. */
	u32_store_relaxed(notifier->ticket, u32_load_relaxed(notifier->ticket) | 1);
}

static void notifier_ring(struct notifier *notifier)
{
	bell_ring_counted(notifier->fd, notifier->bells, &notifier->rings);
}

void notifier_wake(struct notifier *notifier, unsigned count)
{
	(void)u32_fetch_add_release(notifier->ticket, 2); /* [ticket]: carries the wake's reason */
	futex_wake(notifier->ticket, count);
}

bool notifier_signal(struct notifier *notifier, unsigned count)
{
	/* Relaxed: who clears the flag afterwards sees the events, and who sets it writes. */
	bool ring = u32_load_seq_cst(&notifier->signalled) == 0 &&
	            u32_exchange_relaxed(&notifier->signalled, 1) == 0;

	if (ring)
		notifier_ring(notifier);
	if (u32_load_seq_cst(&notifier->waiters) > 0)
		notifier_wake(notifier, count);
	return ring;
}

void notifier_signal_again(struct notifier *notifier)
{
	/* Relaxed: the seq_cst addition in notifier_ring() publishes this store. */
	u32_store_relaxed(&notifier->signalled, 1);
	notifier_ring(notifier);
}

void notifier_clear(struct notifier *notifier)
{
	bell_clear_counted(notifier->fd, notifier->bells, &notifier->rings);
	/* Relaxed: with the new count one sees the 1, stored before, or a newer value. */
	if (u32_load_relaxed(&notifier->signalled) != 0)
		u32_store_seq_cst(&notifier->signalled, 0);
}

uint32_t notifier_wait_enter(struct notifier *notifier)
{
	(void)u32_fetch_add_seq_cst(&notifier->waiters, 1);
	return u32_load_acquire(notifier->ticket); /* [ticket]: carries the wake's reason */
}

void notifier_wait_leave(struct notifier *notifier)
{
	/* Relaxed: an old count wakes somebody in vain. */
	(void)u32_fetch_add_relaxed(&notifier->waiters, UINT32_MAX);
}
