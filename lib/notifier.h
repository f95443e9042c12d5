/* SPDX-License-Identifier: MIT */
/*
 * How one thread tells another that there is something to look at: an eventfd for those who poll,
 * a futex for those who block, a completion for those who sleep in io_uring. Two uses: a queue's
 * notifier, and the bell that wakes the owner.
 */
#ifndef TIMERHUB_NOTIFIER_H
#define TIMERHUB_NOTIFIER_H

#include "announcer.h"
#include "atomic.h"

/* An eventfd, non-blocking, close-on-exec; or a negative errno. */
int bell_open(void);
void bell_close(int fd);

/* Make it readable. Any thread, signal-safe. */
void bell_ring(int fd);

/* Make it unreadable. */
void bell_clear(int fd);

struct notifier {
	int fd; /* the eventfd; fixed at open */
	_Alignas(CACHE_LINE_BYTES)
		atomic_u32 signalled; /* 1: readable, or somebody is about to look */
	atomic_u64 rings;             /* rings done << 16 | begun and not done; who rings */
	atomic_u64 rings_cleared;     /* rings done when it was last cleared; who clears */
	atomic_ptr announcer;         /* the caller's io_uring, or NULL; attach, detach */
	atomic_u32 announcing;        /* threads that may be posting to it */
	atomic_u32 waiters;           /* threads in notifier_wait() or about to be */
	atomic_u32 ticket;            /* futex: changes when waiters must look again */
};

/* 0, or a negative errno. */
int notifier_open(struct notifier *notifier);
void notifier_close(struct notifier *notifier);

/* Owner, after publishing `count` events. True if it had to make the fd readable. */
bool notifier_signal(struct notifier *notifier, unsigned count);

/*
 * Consumer, leaving about `count` events behind: make the fd readable whatever its state, and a new
 * edge.
 */
void notifier_signal_again(struct notifier *notifier, unsigned count);

/* Consumer, having found nothing: make the fd unreadable. It must look again afterwards. */
void notifier_clear(struct notifier *notifier);

/*
 * Blocking, in steps: enter, look whether there is something, wait with the ticket that enter gave,
 * leave. What is published after enter ends the wait. Then look again.
 */
uint32_t notifier_wait_enter(struct notifier *notifier);
void notifier_wait(struct notifier *notifier, uint32_t ticket, uint64_t timeout_ns);
void notifier_wait_leave(struct notifier *notifier);

/*
 * From now on also post to this io_uring whenever the fd is made readable; the notifier owns the
 * announcer from then on. -EBUSY: there is one. The caller then announces
 * what was signalled before.
 */
int notifier_attach(struct notifier *notifier, struct announcer *announcer);

/* Is the fd readable, or about to be? */
bool notifier_signalled(const struct notifier *notifier);
void notifier_announce(struct notifier *notifier, unsigned count);

/* No longer; when it returns nobody posts. -ENOENT: there is none. */
int notifier_detach(struct notifier *notifier);

/* Make every waiter look again. Any thread, signal-safe. */
void notifier_wake_all(struct notifier *notifier);

#endif
