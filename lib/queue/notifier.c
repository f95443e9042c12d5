/* SPDX-License-Identifier: MIT */
/*
 * Implements the notifier of notifier.h.
 *
 *   owner                                consumer
 *   publish in the outbox                clear the eventfd, signalled := 0
 *   signalled = 0? make it 1             read the outbox once more
 *   write to the eventfd
 *
 * seq_cst accesses make one outcome impossible. In this outcome the owner finds `signalled` still 1
 * and does not write, and the consumer's second reading misses the published event.
 *
 * The consumer first clears the eventfd, and then sets `signalled` to 0. The opposite order loses a
 * signal, as the model has found. If the owner signals between the two steps, the consumer then
 * clears the eventfd while `signalled` is 1, and the owner never writes again. In the right order,
 * the owner may write before `signalled` is 0. The eventfd is then readable, even if the outbox is
 * empty. The next consumer sees in `rings` that it must clear the eventfd. The owner counts the
 * write in `rings` before it writes, because the write may wake a consumer that preempts the owner.
 *
 *   owner                                waiter
 *   publish in the outbox                waiters += 1
 *   waiters > 0: ticket += 2, wake       read the outbox, block while ticket is unchanged
 *
 * `waiters` and the outbox are accessed seq_cst. If the owner sees no waiter, the waiter therefore
 * sees the published event. A waiter that enters after the wake loads the new ticket. Such a waiter
 * sees the event, because the owner published the event before it advanced the ticket.
 *
 * Labels: [ticket] notifier_wake → notifier_wait_enter: carries the reason for the wake.
 */
#include "queue/notifier.h"

#include "base/futex.h"
#include "base/test_point.h"

/* notifier.rings counts the writes to the eventfd in progress, and the writes that have ended. */
#define RINGS_MIDWAY ((uint64_t)1)
#define RINGS_DONE ((uint64_t)1 << 16)

void notifier_begin(struct notifier *notifier)
{
	/* Relaxed: no other thread uses the notifier yet. */
	u32_store_relaxed(notifier->ticket, u32_load_relaxed(notifier->ticket) | 1);
}

static void notifier_ring(struct notifier *notifier)
{
	(void)u64_fetch_add_seq_cst(&notifier->rings, RINGS_MIDWAY);
	bell_ring_by(notifier->fd, notifier->bells);
	test_point(TEST_POINT_RING_BEFORE_COUNT);
	/* Relaxed: a consumer that misses this addition clears the eventfd once more. */
	(void)u64_fetch_add_relaxed(&notifier->rings, RINGS_DONE - RINGS_MIDWAY);
}

void notifier_wake(struct notifier *notifier, unsigned count)
{
	(void)u32_fetch_add_release(notifier->ticket, 2); /* [ticket]: carries the wake's reason */
	futex_wake(notifier->ticket, count);
}

bool notifier_signal(struct notifier *notifier, unsigned count)
{
	/*
	 * Relaxed: a consumer that clears the flag after the load sees the published events, and a
	 * consumer that sets the flag after the load writes to the eventfd.
	 */
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
	uint64_t rings = u64_load_seq_cst(&notifier->rings);

	/* Relaxed: if the load returns an old value, this thread reads the fd once in vain. */
	if (rings != u64_load_relaxed(&notifier->rings_cleared)) {
		bell_clear_by(notifier->fd, notifier->bells);
		/*
		 * Store after the clearing: if this thread stops in between, another consumer
		 * clears. A write in progress may come later, so it does not count as cleared.
		 */
		u64_store_relaxed(&notifier->rings_cleared, rings & ~(RINGS_DONE - 1));
	}
	test_point(TEST_POINT_CONSUME_IN_CLEAR);
	/*
	 * Relaxed: a thread sets `signalled` to 1 before it counts its write in `rings`. A thread
	 * that has loaded the new count therefore sees the 1 or a newer value.
	 */
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
	/* Relaxed: an owner that reads the old count of waiters wakes a thread in vain. */
	(void)u32_fetch_add_relaxed(&notifier->waiters, UINT32_MAX);
}
