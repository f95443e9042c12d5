/* SPDX-License-Identifier: MIT */
/* Tells consumers of events: an eventfd for pollers, a futex for blocked threads. */
#ifndef TIMERHUB_NOTIFIER_H
#define TIMERHUB_NOTIFIER_H

#include "base/atomic.h"
#include "base/bell.h"
#include "base/bits.h"
#include "base/cpu.h"

struct notifier {
	int fd; /* queue's eventfd */
	/* zero in a forked child: what fd's calls move, and the futex */
	const struct bell_words *bells;
	atomic_u32 *ticket; /* odd; changes when waiters must check again */
	_Alignas(CACHE_LINE_BYTES)
		atomic_u32 signalled; /* 1: fd is readable, or a consumer will read the outbox */
	struct bell_counts rings;
	atomic_u32 waiters; /* threads between wait_enter and wait_leave */
};

/* `ticket` is zero, or another notifier's before. */
void notifier_begin(struct notifier *notifier);

/* What a signal will touch, and a clear. */
CPU_FETCHES void notifier_fetch(const struct notifier *notifier)
{
	__builtin_prefetch(&notifier->signalled, 1);
}

/* Owner: tell of `count` published events. True: made the fd readable. */
bool notifier_signal(struct notifier *notifier, unsigned count);

/* For a consumer that leaves events: readable, with a new edge. */
void notifier_signal_again(struct notifier *notifier);

/* For a consumer that found none; it must read the outbox again. */
void notifier_clear(struct notifier *notifier);

/*
 * Begin a wait: then read the outbox, futex_wait() with this ticket, and leave. An event published
 * from here on wakes a waiter or changes the ticket. In a forked child the ticket is 0: don't
 * futex_wait(); after a later fork, futex_wait() finds 0 and does not block.
 */
uint32_t notifier_wait_enter(struct notifier *notifier);
void notifier_wait_leave(struct notifier *notifier);

/* Make `count` waiters read the outbox again (UINT32_MAX: all). Signal-safe. */
void notifier_wake(struct notifier *notifier, unsigned count);

#endif
