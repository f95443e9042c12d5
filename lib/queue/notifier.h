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
	 * The buffers for reading and writing the eventfd. They are zeroed in a forked child, so
	 * that a call in which a signal handler forks moves no byte of the shared eventfd there.
	 */
	const struct bell_words *bells;
	/*
	 * A futex word: threads in timerhub_wait() sleep until its value changes. The value is 0
	 * only in a forked child, where nobody may sleep.
	 */
	atomic_u32 *ticket;
	/* 0: the owner must write to the eventfd when it publishes an event. 1: it need not. */
	_Alignas(CACHE_LINE_BYTES) atomic_u32 signalled;
	struct bell_counts rings;
	atomic_u32 waiters; /* how many threads are between wait_enter and wait_leave */
};

/* Sets up the notifier of a new queue. */
void notifier_begin(struct notifier *notifier);

/* Prefetches the line of memory that notifier_signal() and notifier_clear() will write. */
CPU_FETCHES void notifier_fetch(const struct notifier *notifier)
{
	__builtin_prefetch(&notifier->signalled, 1);
}

/*
 * Makes `count` published events known: wakes up to `count` waiting threads, and writes to the
 * eventfd if needed. Returns true if it has written. Only the owner calls it.
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
 * Wakes the programs that poll the eventfd, even if it is readable already. A consumer calls this
 * if it leaves events in the queue.
 */
void notifier_signal_again(struct notifier *notifier);

/*
 * Makes the eventfd unreadable, because the outbox was found empty. The caller must then read the
 * outbox once more, because an event published meanwhile may not have been signalled.
 */
void notifier_clear(struct notifier *notifier);

/*
 * Counts the calling thread as a waiter. The caller must then read the outbox. Returns the value to
 * pass to futex_wait() if the outbox is empty. Returns 0 in a forked child, where nobody may wait.
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
