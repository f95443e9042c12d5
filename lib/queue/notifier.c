/* SPDX-License-Identifier: MIT */
/*
 * See notifier.h. The owner signals, consumers clear and wait.
 *
 *   owner                                consumer
 *   publish in the outbox                clear the bell, signalled := 0
 *   signalled = 0? make it 1             look at the outbox once more
 *   ring the bell
 *
 * seq_cst on both sides makes one outcome impossible: the owner finds signalled still 1 and does
 * not ring, and the consumer's second look misses what was published.
 *
 * The consumer clears the bell before the flag. In the other order a consumer that has already
 * taken the event of a late signal would clear the flag, then swallow the ring while the flag is 1
 * again, and the owner would never ring again (found by the model). If the owner rings between the
 * two steps, the fd is readable for nothing, and `rings` shows the next consumer that there is
 * something to clear. The owner advances `rings` before it writes, too: the woken consumer may
 * preempt the owner, and must already see that there is something to clear.
 *
 *   owner                                waiter
 *   publish in the outbox                waiters += 1
 *   waiters > 0: ticket += 1, wake       look at the outbox, block while ticket is unchanged
 *
 * seq_cst again: if the owner sees no waiter, the waiter sees what was published. A waiter that
 * loads the ticket after it was moved on is not woken, and sees that too: the ticket carries it.
 *
 * Labels: [ticket] notifier_wake → notifier_wait_enter: carries why waiters were woken.
 *
 * Model: tests/models/notifier.pml.
 */
#include "queue/notifier.h"

#include <limits.h>

#include "base/bell.h"
#include "base/futex.h"
#include "base/test_point.h"

/* In notifier.rings: one ring that has begun, and one that is over. */
#define RINGS_MIDWAY ((uint64_t)1)
#define RINGS_DONE ((uint64_t)1 << 16)

int notifier_open(struct notifier *notifier)
{
	int fd = bell_open();

	if (fd < 0)
		return fd;
	*notifier = (struct notifier){ .fd = fd };
	return 0;
}

void notifier_close(struct notifier *notifier)
{
	bell_close(notifier->fd);
	notifier->fd = -1;
}

static void notifier_ring(struct notifier *notifier)
{
	(void)u64_fetch_add_seq_cst(&notifier->rings, RINGS_MIDWAY);
	bell_ring(notifier->fd);
	test_point(TEST_POINT_RING_BEFORE_COUNT);
	/* Relaxed: a consumer that knows of the ring by its beginning clears the bell. */
	(void)u64_fetch_add_relaxed(&notifier->rings, RINGS_DONE - RINGS_MIDWAY);
}

static void notifier_wake(struct notifier *notifier, unsigned count)
{
	(void)u32_fetch_add_release(&notifier->ticket, 1); /* [ticket] */
	futex_wake(&notifier->ticket, count);
}

bool notifier_signal(struct notifier *notifier, unsigned count)
{
	/*
	 * The exchange is relaxed: a consumer that clears the flag after the load sees what was
	 * published. If a consumer has set the flag since the load, its ring serves for both.
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
	/* Relaxed: the ring that follows carries the 1. */
	u32_store_relaxed(&notifier->signalled, 1);
	notifier_ring(notifier);
}

void notifier_clear(struct notifier *notifier)
{
	uint64_t rings = u64_load_seq_cst(&notifier->rings);

	/*
	 * Relaxed: if two consumers write it, the older value only costs one more read of the fd.
	 */
	if (rings != u64_load_relaxed(&notifier->rings_cleared)) {
		bell_clear(notifier->fd);
		/*
		 * Stored after the clearing: if we are held up in between, another consumer clears
		 * for itself. A ring that has begun may still come, and is left to be cleared
		 * later.
		 */
		u64_store_relaxed(&notifier->rings_cleared, rings & ~(RINGS_DONE - 1));
	}
	test_point(TEST_POINT_CONSUME_IN_CLEAR);
	/* Relaxed: each ring that `rings` has shown carries the 1 that was stored before it. */
	if (u32_load_relaxed(&notifier->signalled) != 0)
		u32_store_seq_cst(&notifier->signalled, 0);
}

uint32_t notifier_wait_enter(struct notifier *notifier)
{
	(void)u32_fetch_add_seq_cst(&notifier->waiters, 1);
	return u32_load_acquire(&notifier->ticket); /* [ticket] */
}

void notifier_wait(struct notifier *notifier, uint32_t ticket, uint64_t timeout_ns)
{
	futex_wait(&notifier->ticket, ticket, timeout_ns);
}

void notifier_wait_leave(struct notifier *notifier)
{
	/* Relaxed: read too late, it costs a wake; and it hides no other waiter. */
	(void)u32_fetch_add_relaxed(&notifier->waiters, UINT32_MAX);
}

void notifier_wake_all(struct notifier *notifier)
{
	notifier_wake(notifier, INT_MAX);
}
