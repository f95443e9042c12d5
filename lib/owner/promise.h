/* SPDX-License-Identifier: MIT */
/*
 * The promise: the time by which the owner will look into its inbox again, whether it sleeps until
 * then or not. A caller wakes the owner only for a timer that is due earlier, so arming a timer
 * rarely needs a system call.
 */
#ifndef TIMERHUB_PROMISE_H
#define TIMERHUB_PROMISE_H

#include "base/atomic.h"
#include "base/bits.h"

struct promise {
	/* The time by which the owner will look into its inbox again. Only the owner writes it. */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 look_by_ns;
	atomic_u64 pass;       /* number of the owner's present pass, which it writes */
	atomic_u64 woken_pass; /* the latest pass in which a caller has woken the owner */
};

/* Sets up the promise with this time, UINT64_MAX if the owner waits to be woken. */
void promise_init(struct promise *promise, uint64_t look_by_ns);

/* Begins the owner's next pass. Call it before the clock and the inbox are read. */
void promise_begin_pass(struct promise *promise);

/* Stores a new promise. Returns true if it is later, so the owner must read the inbox again. */
bool promise_make(struct promise *promise, uint64_t look_by_ns);

/* Tells whether a caller has woken the owner in this pass. The answer is only a hint. */
bool promise_woken(const struct promise *promise);

/* Tells whether a caller must wake the owner. Stores in *pass what promise_record_wake() needs. */
static inline bool promise_wants_wake(const struct promise *promise, uint64_t deadline_ns,
                                      uint64_t *pass)
{
	/* Load the pass first, so that a wake recorded for it was sent after it began. */
	*pass = u64_load_seq_cst(&promise->pass);
	if (deadline_ns >= u64_load_seq_cst(&promise->look_by_ns))
		return false;
	return u64_load_relaxed(&promise->woken_pass) != *pass;
}

/* Records that a caller has woken the owner in this pass, so that others need not. */
void promise_record_wake(struct promise *promise, uint64_t pass);

#endif
