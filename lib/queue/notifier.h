/* SPDX-License-Identifier: MIT */
/* Informs consumers of events. An eventfd wakes pollers, and a futex wakes blocked threads. */
#ifndef TIMERHUB_NOTIFIER_H
#define TIMERHUB_NOTIFIER_H

#include "base/atomic.h"
#include "base/bell.h"
#include "base/bits.h"

struct notifier {
	int fd; /* the queue's eventfd */
	/* In a page that is zero in a forked child: what fd's calls move, and the futex. */
	const struct bell_words *bells;
	atomic_u32 *ticket; /* odd; changes when waiters must check again */
	_Alignas(CACHE_LINE_BYTES)
		atomic_u32 signalled; /* 1: fd is readable, or a consumer will read the outbox */
	atomic_u64 rings;             /* number of writes to fd: ended << 16 | in progress */
	atomic_u64 rings_cleared;     /* number of ended writes at the last clearing of fd */
	atomic_u32 waiters;           /* number of threads between wait_enter and wait_leave */
};

/* Begin to use `ticket`, which is zero or another notifier has used. */
void notifier_begin(struct notifier *notifier);

/* Owner: signal `count` published events. Returns whether the call made the fd readable. */
bool notifier_signal(struct notifier *notifier, unsigned count);

/* Make the fd readable, always with a new edge. A consumer that leaves events calls this. */
void notifier_signal_again(struct notifier *notifier);

/* Clear the fd. A consumer that found no event calls this, and must read the outbox again. */
void notifier_clear(struct notifier *notifier);

/*
 * Begin a wait, and return the ticket. The consumer then reads the outbox, calls futex_wait() with
 * this ticket, and ends the wait by notifier_wait_leave(). If an event is published after
 * notifier_wait_enter(), futex_wait() does not block, or the owner wakes a waiter for the event. In
 * a forked child the ticket is 0, and the consumer must not call futex_wait(). If the fork comes
 * later, futex_wait() finds 0 instead of the ticket, and does not block.
 */
uint32_t notifier_wait_enter(struct notifier *notifier);
void notifier_wait_leave(struct notifier *notifier);

/* Make `count` waiters read the outbox again (UINT32_MAX: all). The call is signal-safe. */
void notifier_wake(struct notifier *notifier, unsigned count);

#endif
