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

/*
 * Sets up the promise. `look_by_ns` is 0 if the owner will read its inbox at once. It is UINT64_MAX
 * if the owner reads the inbox only when somebody wakes it.
 */
void promise_init(struct promise *promise, uint64_t look_by_ns);

/*
 * Counts the owner's next pass, which is a round of its work. The owner calls it before it reads
 * the clock and empties the inbox.
 */
void promise_begin_pass(struct promise *promise);

/*
 * Stores the time by which the owner will read its inbox again. Returns true if the owner must read
 * the inbox once more before it sleeps.
 */
bool promise_make(struct promise *promise, uint64_t look_by_ns);

/*
 * Tells the owner whether a caller has woken it since its present pass (round of work) began. The
 * answer may be out of date, so it is only a hint.
 */
bool promise_woken(const struct promise *promise);

/*
 * Tells whether a thread that has put a timer into the inbox must wake the owner. Stores the number
 * of the owner's pass (round of work) in *pass, for promise_record_wake().
 */
static inline bool promise_wants_wake(const struct promise *promise, uint64_t deadline_ns,
                                      uint64_t *pass)
{
	/*
	 * The number of the pass is loaded first, so that a wake that is recorded for this pass was
	 * sent after the pass had begun.
	 */
	*pass = u64_load_seq_cst(&promise->pass);
	if (deadline_ns >= u64_load_seq_cst(&promise->look_by_ns))
		return false;
	return u64_load_relaxed(&promise->woken_pass) != *pass;
}

/*
 * Records that a caller has woken the owner in the pass (round of work) with this number, so that
 * other callers need not wake it again in that pass.
 */
void promise_record_wake(struct promise *promise, uint64_t pass);

#endif
