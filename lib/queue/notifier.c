/* SPDX-License-Identifier: MIT */
/*
 * Implements the notifier of notifier.h. The owner signals consumers, which wait and clear.
 *
 *   owner                                consumer
 *   publish in the outbox                clear the eventfd, signalled := 0
 *   signalled = 0? make it 1             read the outbox once more
 *   write to the eventfd
 *
 * seq_cst accesses make one outcome impossible: the owner finds `signalled` still 1 and does not
 * write, and the consumer's second reading misses the published event.
 *
 * The consumer clears the eventfd before the flag `signalled`. In the opposite order a signal is
 * lost, as the model has found. A consumer that has already taken the event of a late signal would
 * clear the flag, and then clear the eventfd while the flag is 1 again. The owner would then never
 * write again. If the owner writes between the clearing of the eventfd and of the flag, the eventfd
 * is readable without an event, and `rings` shows the next consumer that it must clear the eventfd.
 * The owner advances `rings` before the write, because the woken consumer may preempt the owner.
 *
 *   owner                                waiter
 *   publish in the outbox                waiters += 1
 *   waiters > 0: ticket += 1, wake       read the outbox, block while ticket is unchanged
 *
 * `waiters` and the outbox are accessed seq_cst. If the owner sees no waiter, the waiter therefore
 * sees the published event. A waiter that loads the advanced ticket is not woken, but sees the
 * event, because the ticket carries it.
 *
 * Labels: [ticket] notifier_wake → notifier_wait_enter: carries the reason for the wake.
 *
 * Model: tests/models/notifier.pml.
 */
#include "queue/notifier.h"

#include "base/bell.h"
#include "base/futex.h"
#include "base/test_point.h"

/* notifier.rings counts the writes to the eventfd in progress, and the writes that have ended. */
#define RINGS_MIDWAY ((uint64_t)1)
#define RINGS_DONE ((uint64_t)1 << 16)

static void notifier_ring(struct notifier *notifier)
{
	(void)u64_fetch_add_seq_cst(&notifier->rings, RINGS_MIDWAY);
	bell_ring(notifier->fd);
	test_point(TEST_POINT_RING_BEFORE_COUNT);
	/* Relaxed: a consumer that sees the write in progress clears the eventfd. */
	(void)u64_fetch_add_relaxed(&notifier->rings, RINGS_DONE - RINGS_MIDWAY);
}

void notifier_wake(struct notifier *notifier, unsigned count)
{
	(void)u32_fetch_add_release(&notifier->ticket, 1); /* [ticket]: carries the wake's reason */
	futex_wake(&notifier->ticket, count);
}

bool notifier_signal(struct notifier *notifier, unsigned count)
{
	/*
	 * The exchange is relaxed, because a consumer that clears the flag after the load sees the
	 * published events. If a consumer set the flag since the load, that consumer's write is
	 * enough.
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
	/* Relaxed: the write to the eventfd carries the value 1 of `signalled`. */
	u32_store_relaxed(&notifier->signalled, 1);
	notifier_ring(notifier);
}

void notifier_clear(struct notifier *notifier)
{
	uint64_t rings = u64_load_seq_cst(&notifier->rings);

	/* Relaxed: an older `rings_cleared` of another consumer costs one more read of fd. */
	if (rings != u64_load_relaxed(&notifier->rings_cleared)) {
		bell_clear(notifier->fd);
		/*
		 * Store `rings_cleared` after the clearing. If this thread stops before the store,
		 * another consumer clears the eventfd. A write in progress may come after the
		 * clearing, so a later consumer must clear the eventfd again.
		 */
		u64_store_relaxed(&notifier->rings_cleared, rings & ~(RINGS_DONE - 1));
	}
	test_point(TEST_POINT_CONSUME_IN_CLEAR);
	/* Relaxed: each write counted in `rings` carries the 1 that `signalled` got before it. */
	if (u32_load_relaxed(&notifier->signalled) != 0)
		u32_store_seq_cst(&notifier->signalled, 0);
}

uint32_t notifier_wait_enter(struct notifier *notifier)
{
	(void)u32_fetch_add_seq_cst(&notifier->waiters, 1);
	return u32_load_acquire(&notifier->ticket); /* [ticket]: carries the wake's reason */
}

void notifier_wait_leave(struct notifier *notifier)
{
	/* Relaxed: an owner that reads the old count of waiters wakes a thread in vain. */
	(void)u32_fetch_add_relaxed(&notifier->waiters, UINT32_MAX);
}
