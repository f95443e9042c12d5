/* SPDX-License-Identifier: MIT */
/*
 * Tells other threads that there is something to look at: an eventfd for threads that poll, a futex
 * for threads that block.
 */
#ifndef TIMERHUB_NOTIFIER_H
#define TIMERHUB_NOTIFIER_H

#include "base/atomic.h"
#include "base/bits.h"

struct notifier {
	int fd; /* the eventfd; fixed at open */
	_Alignas(CACHE_LINE_BYTES)
		atomic_u32 signalled; /* 1: readable, or a consumer is about to look */
	atomic_u64 rings;             /* rings done << 16 | begun and not done; ringing threads */
	atomic_u64 rings_cleared;     /* rings done at the last clearing; consumers */
	atomic_u32 waiters;           /* threads in notifier_wait() or about to be */
	atomic_u32 ticket;            /* futex: changes when waiters must look again */
};

/* Returns 0, or a negative errno. */
int notifier_open(struct notifier *notifier);
void notifier_close(struct notifier *notifier);

/* Owner, after publishing `count` events. Returns whether the fd had to be made readable. */
bool notifier_signal(struct notifier *notifier, unsigned count);

/* Consumer that leaves events behind: make the fd readable whatever its state, with a new edge. */
void notifier_signal_again(struct notifier *notifier);

/* Consumer that found nothing: make the fd unreadable. The consumer must look again afterwards. */
void notifier_clear(struct notifier *notifier);

/*
 * Block, in steps: enter, look for events, wait with the ticket that enter gave, leave. An event
 * that is published after enter ends the wait. Then look again.
 */
uint32_t notifier_wait_enter(struct notifier *notifier);
void notifier_wait(struct notifier *notifier, uint32_t ticket, uint64_t timeout_ns);
void notifier_wait_leave(struct notifier *notifier);

/* Make every waiting thread look again. Any thread, signal-safe. */
void notifier_wake_all(struct notifier *notifier);

#endif
