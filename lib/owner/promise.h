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
	/* The promised time. The owner writes it. */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 look_by_ns;
	atomic_u64 pass;       /* number of the owner's present pass, which it writes */
	atomic_u64 woken_pass; /* the latest pass in which a caller has woken the owner */
};

/* Begins with a promise: 0 if a pass follows, UINT64_MAX if the owner waits until it is woken. */
void promise_init(struct promise *promise, uint64_t look_by_ns);

/*
 * Gives the owner's next pass its number. It comes before the clock is read and the inbox drained.
 */
void promise_begin_pass(struct promise *promise);

/* Stores a new promise of the owner. Returns true if it must look into the inbox once more. */
bool promise_make(struct promise *promise, uint64_t look_by_ns);

/* Tells the owner whether a caller has woken it in this pass. The answer is a hint. */
bool promise_woken(const struct promise *promise);

/*
 * Tells a caller that has pushed a slot whether it must wake the owner, and then call
 * promise_record_wake() with the number that is stored in *pass.
 */
static inline bool promise_wants_wake(const struct promise *promise, uint64_t deadline_ns,
                                      uint64_t *pass)
{
	/* The pass is loaded first, so that a wake recorded for it was sent after it began. */
	*pass = u64_load_seq_cst(&promise->pass);
	if (deadline_ns >= u64_load_seq_cst(&promise->look_by_ns))
		return false;
	return u64_load_relaxed(&promise->woken_pass) != *pass;
}

/* Notes a wake, so that other callers need not wake the owner in the same pass. */
void promise_record_wake(struct promise *promise, uint64_t pass);

#endif
