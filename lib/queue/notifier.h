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
	 * The buffers for writing and reading the eventfd. A forked child finds them zeroed. If a
	 * signal handler forks in the middle of a call, the child therefore moves no byte of the
	 * eventfd that it shares with its parent.
	 */
	const struct bell_words *bells;
	/*
	 * The futex on which timerhub_wait() blocks. It changes when a blocked thread must look
	 * into the outbox again. It is always odd, except in a forked child, which finds zeroed
	 * memory.
	 */
	atomic_u32 *ticket;
	/*
	 * 1 while nobody needs to write to the eventfd, because it is readable or about to become
	 * so, or because a consumer is about to read the outbox. 0: the owner must write to the
	 * eventfd when it publishes the next event.
	 */
	_Alignas(CACHE_LINE_BYTES) atomic_u32 signalled;
	struct bell_counts rings;
	atomic_u32 waiters; /* how many threads are between wait_enter and wait_leave */
};

/*
 * Sets up a notifier. Its ticket, the futex word on which timerhub_wait() blocks, keeps the number
 * that an earlier queue has left there, but is made odd. Each wake adds 2, so the ticket stays odd.
 * A forked child finds zeroed memory, so there the ticket is 0, and nobody may wait.
 */
void notifier_begin(struct notifier *notifier);

/* Prefetches the line of memory that notifier_signal() and notifier_clear() will write. */
CPU_FETCHES void notifier_fetch(const struct notifier *notifier)
{
	__builtin_prefetch(&notifier->signalled, 1);
}

/*
 * Tells the consumers of a queue that the owner has published `count` events. It writes to the
 * eventfd if that is needed, and wakes up to `count` threads that wait. Returns true if it has
 * written. Only the owner thread may call it.
 */
bool notifier_signal(struct notifier *notifier, unsigned count);

/*
 * Tells whether consumers have found the queue empty since the eventfd was last written to. Only
 * the owner thread calls this, before it publishes new events.
 */
static inline bool notifier_is_idle(const struct notifier *notifier)
{
	return u32_load_relaxed(&notifier->signalled) == 0; /* relaxed: for a time that is shown */
}

/*
 * Writes to the eventfd again although it may be readable, for a consumer that leaves events in the
 * queue. A program that polls edge-triggered learns of these events only by a new write.
 */
void notifier_signal_again(struct notifier *notifier);

/*
 * Makes the eventfd unreadable, for a consumer that has found the outbox empty. The consumer must
 * read the outbox once more afterwards, because an event that was published meanwhile may not have
 * been signalled.
 */
void notifier_clear(struct notifier *notifier);

/*
 * Counts the calling thread as a waiter, and returns the ticket, the value of the futex word on
 * which it will block. The caller then reads the outbox and, if that is empty, calls futex_wait()
 * with the ticket. An event that is published after this call either wakes a waiter, or changes the
 * futex word so that futex_wait() does not block. notifier_wait_leave() must follow.
 *
 * In a forked child this returns 0, and the caller must not wait. If the process forks before
 * futex_wait(), the child does not block, because its futex word is 0.
 */
uint32_t notifier_wait_enter(struct notifier *notifier);

/* Ends a wait that notifier_wait_enter() has begun, whether the thread has blocked or not. */
void notifier_wait_leave(struct notifier *notifier);

/*
 * Makes up to `count` threads in timerhub_wait() read the outbox again, or all of them if `count`
 * is UINT32_MAX. It may be called in a signal handler.
 */
void notifier_wake(struct notifier *notifier, unsigned count);

#endif
