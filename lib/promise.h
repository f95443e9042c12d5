/* SPDX-License-Identifier: MIT */
/*
 * The owner's promise: "I look at the inbox no later than this instant". It holds while the owner
 * works as well as while it sleeps, and it is why submitting is nearly always free of system calls:
 * a caller wakes the owner only for a deadline earlier than the promise.
 */
#ifndef TIMERHUB_PROMISE_H
#define TIMERHUB_PROMISE_H

#include "atomic.h"

struct promise {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 look_by_ns; /* the promise; the owner writes */
	atomic_u64 pass;       /* number of the owner's current pass; the owner writes */
	atomic_u64 woken_pass; /* a pass in which somebody has woken the owner; callers write */
};

/*
 * `look_by_ns`: 0 if the owner is about to make its first pass, UINT64_MAX if it waits for a wake.
 */
void promise_init(struct promise *promise, uint64_t look_by_ns);

/* Owner: a new pass begins. Before the clock is read, before the inbox is looked at. */
void promise_begin_pass(struct promise *promise);

/* Owner: the next instant at which it will look. True if it must look at the inbox once more. */
bool promise_make(struct promise *promise, uint64_t look_by_ns);

/* Owner: has somebody woken it in this pass? A hint for one that spins. */
bool promise_woken(const struct promise *promise);

/*
 * Caller, after publishing: must the owner be woken for this deadline? If so `*pass` is to be
 * handed to promise_record_wake() once that has been done.
 */
bool promise_wants_wake(const struct promise *promise, uint64_t deadline_ns, uint64_t *pass);

/* Caller: the owner has been woken in this pass; others need not. */
void promise_record_wake(struct promise *promise, uint64_t pass);

#endif
