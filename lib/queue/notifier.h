/* SPDX-License-Identifier: MIT */
/*
 * Tells the consumers of a queue that events wait for them: those that poll the queue's eventfd,
 * and the threads that are blocked in timerhub_wait(), which sleep on a futex.
 */
#ifndef TIMERHUB_NOTIFIER_H
#define TIMERHUB_NOTIFIER_H

#include "base/atomic.h"
#include "base/bell.h"
#include "base/bits.h"
#include "base/cpu.h"

struct notifier {
	int fd; /* the queue's eventfd */
	/*
	 * The eventfd's buffers, zeroed in a forked child, where a half-done call then moves
	 * nothing.
	 */
	const struct bell_words *bells;
	/* The futex word of timerhub_wait(): always odd, but 0 in a forked child. A wake adds 2. */
	atomic_u32 *ticket;
	/*
	 * 1: the eventfd was written to, or a consumer is about to read. 0: the owner must write.
	 */
	_Alignas(CACHE_LINE_BYTES) atomic_u32 signalled;
	struct bell_counts rings;
	atomic_u32 waiters; /* how many threads are between wait_enter and wait_leave */
};

/* Sets up a notifier, whose futex word becomes odd, because 0 means a forked child. */
void notifier_begin(struct notifier *notifier);

/* Prefetches the line of memory that notifier_signal() and notifier_clear() will write. */
CPU_FETCHES void notifier_fetch(const struct notifier *notifier)
{
	__builtin_prefetch(&notifier->signalled, 1);
}

/*
 * Wakes consumers for `count` published events. Returns true if it wrote the eventfd. For the
 * owner.
 */
bool notifier_signal(struct notifier *notifier, unsigned count);

/* Tells whether consumers have found the queue empty since the last write. For the owner only. */
static inline bool notifier_is_idle(const struct notifier *notifier)
{
	return u32_load_relaxed(&notifier->signalled) == 0; /* relaxed: for a time that is shown */
}

/*
 * Writes to the eventfd for events that a consumer leaves, because edge-triggered polls need a new
 * write.
 */
void notifier_signal_again(struct notifier *notifier);

/*
 * Makes the eventfd unreadable. The caller must then read the outbox once more, for newer events.
 */
void notifier_clear(struct notifier *notifier);

/* Counts a waiter. Returns the value for futex_wait(), or 0 in a forked child: don't wait. */
uint32_t notifier_wait_enter(struct notifier *notifier);

/* Ends a wait that notifier_wait_enter() has begun, whether the thread has blocked or not. */
void notifier_wait_leave(struct notifier *notifier);

/*
 * Makes up to `count` waiters read the outbox again; UINT32_MAX means all. Signal handlers may call
 * it.
 */
void notifier_wake(struct notifier *notifier, unsigned count);

#endif
