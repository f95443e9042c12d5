/* SPDX-License-Identifier: MIT */
/*
 * Tells other threads that there is something to look at: an eventfd for threads that poll, a futex
 * for threads that block, a completion for threads that sleep in io_uring.
 */
#ifndef TIMERHUB_NOTIFIER_H
#define TIMERHUB_NOTIFIER_H

#include "announcer.h"
#include "atomic.h"

struct notifier {
	int fd; /* the eventfd; fixed at open */
	_Alignas(CACHE_LINE_BYTES)
		atomic_u32 signalled; /* 1: readable, or a consumer is about to look */
	atomic_u64 rings;             /* rings done << 16 | begun and not done; ringing threads */
	atomic_u64 rings_cleared;     /* rings done at the last clearing; consumers */
	atomic_ptr announcer;         /* to the caller's io_uring, or NULL; attach, detach */
	atomic_u32 announcing;        /* threads that may be posting to it */
	atomic_u32 waiters;           /* threads in notifier_wait() or about to be */
	atomic_u32 ticket;            /* futex: changes when waiters must look again */
};

/* Returns 0, or a negative errno. */
int notifier_open(struct notifier *notifier);
void notifier_close(struct notifier *notifier);

/* Owner, after publishing `count` events. Returns whether the fd had to be made readable. */
bool notifier_signal(struct notifier *notifier, unsigned count);

/*
 * Consumer that leaves about `count` events behind: make the fd readable whatever its state, with a
 * new edge.
 */
void notifier_signal_again(struct notifier *notifier, unsigned count);

/* Consumer that found nothing: make the fd unreadable. The consumer must look again afterwards. */
void notifier_clear(struct notifier *notifier);

/*
 * Block, in steps: enter, look for events, wait with the ticket that enter gave, leave. An event
 * that is published after enter ends the wait. Then look again.
 */
uint32_t notifier_wait_enter(struct notifier *notifier);
void notifier_wait(struct notifier *notifier, uint32_t ticket, uint64_t timeout_ns);
void notifier_wait_leave(struct notifier *notifier);

/*
 * From now on post to this io_uring too whenever the fd is made readable. The notifier owns the
 * announcer if this returns 0; -EBUSY: the notifier has another. After 0 the caller must announce
 * what was signalled before.
 */
int notifier_attach(struct notifier *notifier, struct announcer *announcer);

/* Is the fd readable, or about to be? */
bool notifier_signalled(const struct notifier *notifier);
void notifier_announce(struct notifier *notifier, unsigned count);

/* End that. When this returns, no thread posts. Returns 0, or -ENOENT: there is no announcer. */
int notifier_detach(struct notifier *notifier);

/* Make every waiting thread look again. Any thread, signal-safe. */
void notifier_wake_all(struct notifier *notifier);

#endif
