/* SPDX-License-Identifier: MIT */
/*
 * Tells the consumers of a queue that events wait: those that poll by an eventfd, and threads that
 * are blocked in timerhub_wait() by a futex.
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
	 * What is written to the eventfd and read from it. In a forked child this memory is zero.
	 */
	const struct bell_words *bells;
	/*
	 * The futex: odd, and changed when waiters must look again. In a forked child it is zero.
	 */
	atomic_u32 *ticket;
	/* 1 if the eventfd is readable, or if a consumer is about to read the outbox. */
	_Alignas(CACHE_LINE_BYTES) atomic_u32 signalled;
	struct bell_counts rings;
	atomic_u32 waiters; /* how many threads are between wait_enter and wait_leave */
};

/* Begins with a ticket that is zero, or that an earlier notifier has left. */
void notifier_begin(struct notifier *notifier);

/* Fetches what a signal or a clear will touch. */
CPU_FETCHES void notifier_fetch(const struct notifier *notifier)
{
	__builtin_prefetch(&notifier->signalled, 1);
}

/*
 * Tells the consumers that `count` events were published. Returns true if it has made the eventfd
 * readable. Only the owner calls it.
 */
bool notifier_signal(struct notifier *notifier, unsigned count);

/*
 * Tells whether consumers have found the queue empty since they were last signalled. Only the owner
 * asks, before it publishes.
 */
static inline bool notifier_is_idle(const struct notifier *notifier)
{
	return u32_load_relaxed(&notifier->signalled) == 0; /* relaxed: for a time that is shown */
}

/* Makes the eventfd readable with a new edge, for a consumer that leaves events behind. */
void notifier_signal_again(struct notifier *notifier);

/*
 * Makes the eventfd unreadable, for a consumer that has found the outbox empty. The consumer must
 * look into the outbox once more afterwards, because an event may have come meanwhile.
 */
void notifier_clear(struct notifier *notifier);

/*
 * Begins a wait and returns the ticket. The caller then looks into the outbox, calls futex_wait()
 * with this ticket if it is empty, and ends with notifier_wait_leave(). An event that is published
 * from now on wakes a waiter, or it changes the ticket, so that futex_wait() does not block.
 *
 * In a forked child the ticket is 0, and the caller must not wait. If the process forks between
 * this call and futex_wait(), the child does not block either, because it finds 0 and not its
 * ticket.
 */
uint32_t notifier_wait_enter(struct notifier *notifier);

/* Ends a wait. */
void notifier_wait_leave(struct notifier *notifier);

/*
 * Makes up to `count` waiters look into the outbox again; UINT32_MAX means all of them. It can be
 * called in a signal handler.
 */
void notifier_wake(struct notifier *notifier, unsigned count);

#endif
