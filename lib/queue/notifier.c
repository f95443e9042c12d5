/* SPDX-License-Identifier: MIT */
/*
 * The notifier tells consumers that their queue has events, by an eventfd and by a futex
 * (notifier.h).
 *
 * Writing to the eventfd costs a system call, so the owner does it only if `signalled` is 0, and a
 * consumer that finds the outbox empty sets `signalled` to 0 again. No event can get lost between
 * the two:
 *
 *   owner                                consumer
 *   publish in the outbox                clear the eventfd, signalled := 0
 *   signalled = 0? make it 1             read the outbox once more
 *   write to the eventfd
 *
 * All of these are seq_cst. So either the owner finds 0 and writes, or the consumer's second
 * reading finds the event; that both see the old value is impossible.
 *
 * The consumer clears the eventfd before it sets `signalled` to 0. In the other order the owner
 * could signal in between, and `signalled` would then be 1 for ever while the eventfd is not
 * readable. In this order the owner can write although a consumer is about to set 0; the eventfd is
 * then readable for nothing, which the next consumer notices by `rings`. They are counted before
 * the write, because the write may wake a consumer that runs at once in place of the owner.
 *
 * notifier_clear() loads `signalled` with relaxed order. A thread that is about to write to the
 * eventfd stores 1 in `signalled`, and then counts the write in `rings` (seq_cst).
 * bell_clear_counted() has just loaded that count (seq_cst). If it saw the write counted, the
 * relaxed load finds the 1.
 *
 * Threads that are blocked in timerhub_wait() are woken by a futex, the ticket:
 *
 *   owner                                waiter
 *   publish in the outbox                waiters += 1
 *   waiters > 0: ticket += 2, wake       read the outbox, block while ticket is unchanged
 *
 * `waiters` and the outbox are seq_cst too, so an owner that sees no waiter has published before
 * the waiter reads the outbox. A waiter that enters after the wake loads the new ticket, and with
 * it sees the event. The ticket begins with an odd number, and each wake adds 2, so it is never 0
 * in the process itself. In a forked child it is 0, because the memory is zeroed there. So a child
 * that was forked just before its futex_wait() does not block. A new queue goes on with the number
 * that a closed queue has left in the same ticket.
 *
 * notifier_signal_again() writes to the eventfd even if it is readable. A program that polls with
 * EPOLLET learns only by a new write that a consumer has left events in the queue.
 *
 * Labels: [ticket] notifier_wake → notifier_wait_enter: whoever loads the new ticket also sees why
 *         it was woken: an event, or the stop or close of the queue.
 */
#include "queue/notifier.h"

#include "base/futex.h"
#include "base/invariant.h"

void notifier_begin(struct notifier *notifier)
{
	/* Relaxed is enough, because no other thread uses the notifier yet. */
	u32_store_relaxed(notifier->ticket, u32_load_relaxed(notifier->ticket) | 1);
}

static void notifier_ring(struct notifier *notifier)
{
	bell_ring_counted(notifier->fd, notifier->bells, &notifier->rings);
}

void notifier_wake(struct notifier *notifier, unsigned count)
{
	/*
	 * Add 2, so that the ticket stays odd and is never 0: only a forked child has the ticket 0.
	 * Release: a thread that gets the new ticket sees what was stored before. [ticket]
	 */
	(void)u32_fetch_add_release(notifier->ticket, 2);
	futex_wake(notifier->ticket, count);
}

bool notifier_signal(struct notifier *notifier, unsigned count)
{
	/*
	 * The load is seq_cst, because it must not run before the store that published the event:
	 * see the head of this file.
	 */
	bool ring = u32_load_seq_cst(&notifier->signalled) == 0 &&
	            /*
	             * Relaxed: the exchange only decides which of several threads writes to the
	             * eventfd.
	             */
	            u32_exchange_relaxed(&notifier->signalled, 1) == 0;

	if (ring)
		notifier_ring(notifier);
	if (u32_load_seq_cst(&notifier->waiters) > 0)
		notifier_wake(notifier, count);
	return ring;
}

void notifier_signal_again(struct notifier *notifier)
{
	/*
	 * Relaxed is enough: notifier_ring() begins with a seq_cst addition, which publishes this
	 * store.
	 */
	u32_store_relaxed(&notifier->signalled, 1);
	notifier_ring(notifier);
}

void notifier_clear(struct notifier *notifier)
{
	bell_clear_counted(notifier->fd, notifier->bells, &notifier->rings);
	/*
	 * Relaxed is enough. A thread that writes to the eventfd first sets `signalled` to 1, and
	 * then counts its write. bell_clear_counted() has loaded that count, so the 1 is visible
	 * here if the write was counted.
	 */
	if (u32_load_relaxed(&notifier->signalled) != 0)
		u32_store_seq_cst(&notifier->signalled, 0);
}

uint32_t notifier_wait_enter(struct notifier *notifier)
{
	(void)u32_fetch_add_seq_cst(&notifier->waiters, 1);
	/*
	 * Acquire: this thread also sees everything that was stored before the ticket got this
	 * value. [ticket]
	 */
	return u32_load_acquire(notifier->ticket);
}

void notifier_wait_leave(struct notifier *notifier)
{
	/*
	 * Relaxed is enough: if the owner still sees the old count, it makes one futex_wake() in
	 * vain.
	 */
	uint32_t before = u32_fetch_add_relaxed(&notifier->waiters, UINT32_MAX);

	invariant(before > 0);
}
