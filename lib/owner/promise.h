/* SPDX-License-Identifier: MIT */
/*
 * The owner's promise: "I look at the inbox no later than this instant". The promise holds while
 * the owner works as well as while it sleeps. A caller wakes the owner only for a deadline earlier
 * than the promise, so submitting nearly always needs no system call.
 */
#ifndef TIMERHUB_PROMISE_H
#define TIMERHUB_PROMISE_H

#include "base/atomic.h"
#include "base/bits.h"

struct promise {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 look_by_ns; /* the promise; the owner writes */
	atomic_u64 pass;       /* number of the owner's current pass; the owner writes */
	atomic_u64 woken_pass; /* latest pass in which a caller woke the owner; callers write */
};

/*
 * Set up the first promise: 0 if the owner is about to make a pass, UINT64_MAX if it waits for a
 * wake.
 */
void promise_init(struct promise *promise, uint64_t look_by_ns);

/* Owner: begin a pass. To be called before it reads the clock and looks at the inbox. */
void promise_begin_pass(struct promise *promise);

/* Owner: promise this instant. Returns true if the owner must look at the inbox once more. */
bool promise_make(struct promise *promise, uint64_t look_by_ns);

/* Owner: returns whether a caller has woken it in this pass. A hint, for spinning. */
bool promise_woken(const struct promise *promise);

/*
 * Caller, after publishing: returns whether the owner must be woken for this deadline. If so, hand
 * `*pass` to promise_record_wake() after the wake.
 */
bool promise_wants_wake(const struct promise *promise, uint64_t deadline_ns, uint64_t *pass);

/* Caller: record that the owner has been woken in this pass, so that others need not wake it. */
void promise_record_wake(struct promise *promise, uint64_t pass);

#endif
