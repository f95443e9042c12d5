/* SPDX-License-Identifier: MIT */
/*
 * Informs other threads that a queue has events: an eventfd for threads that poll, a futex for
 * threads that block.
 */
#ifndef TIMERHUB_NOTIFIER_H
#define TIMERHUB_NOTIFIER_H

#include "base/atomic.h"
#include "base/bits.h"

struct notifier {
	int fd; /* the eventfd, a bell; the queue opens and closes it */
	_Alignas(CACHE_LINE_BYTES)
		atomic_u32 signalled; /* 1: readable, or a consumer is about to read the outbox */
	atomic_u64 rings;             /* ended writes to fd << 16 | begun; writing threads */
	atomic_u64 rings_cleared;     /* ended writes at the last clearing; consumers */
	atomic_u32 waiters;           /* threads between enter and leave */
	atomic_u32 ticket;            /* futex: changes when waiters must check again */
};

/* Owner, after publishing `count` events. Returns whether it made the fd readable. */
bool notifier_signal(struct notifier *notifier, unsigned count);

/* Consumer that leaves events behind: make the fd readable in any state, with a new edge. */
void notifier_signal_again(struct notifier *notifier);

/* Consumer that found no event: clear the fd. Afterwards it must read the outbox again. */
void notifier_clear(struct notifier *notifier);

/*
 * Block, in four steps: enter, read the outbox, futex_wait() while the ticket is the one that enter
 * returned, leave. An event that is published after enter ends the wait. Then read the outbox
 * again.
 */
uint32_t notifier_wait_enter(struct notifier *notifier);
void notifier_wait_leave(struct notifier *notifier);

/* Make `count` waiting threads check again (UINT32_MAX: all). Any thread, signal-safe. */
void notifier_wake(struct notifier *notifier, unsigned count);

#endif
