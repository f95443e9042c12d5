/* SPDX-License-Identifier: MIT */
/*
 * The time by which the owner will next drain the inbox, asleep or not: a caller wakes it only for
 * an earlier deadline, so a submission rarely needs a system call.
 */
#ifndef TIMERHUB_PROMISE_H
#define TIMERHUB_PROMISE_H

#include "base/atomic.h"
#include "base/bits.h"

struct promise {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 look_by_ns; /* by the owner */
	atomic_u64 pass;                                  /* by the owner */
	atomic_u64 woken_pass; /* latest in which a caller woke the owner; by callers */
};

/* 0: a pass follows; UINT64_MAX: the owner waits for a wake. */
void promise_init(struct promise *promise, uint64_t look_by_ns);

/* Owner: number a new pass, before the clock is read and the inbox drained. */
void promise_begin_pass(struct promise *promise);

/* Owner. True: the inbox must be read once more. */
bool promise_make(struct promise *promise, uint64_t look_by_ns);

/* Owner: has a caller woken it in this pass? A hint. */
bool promise_woken(const struct promise *promise);

/* By a caller after its push: must it wake the owner, then call promise_record_wake()? */
static inline bool promise_wants_wake(const struct promise *promise, uint64_t deadline_ns,
                                      uint64_t *pass)
{
	/* first, so that a wake recorded for this pass was sent after it began */
	*pass = u64_load_seq_cst(&promise->pass);
	if (deadline_ns >= u64_load_seq_cst(&promise->look_by_ns))
		return false;
	return u64_load_relaxed(&promise->woken_pass) != *pass;
}

/* So that other callers need not wake the owner too. */
void promise_record_wake(struct promise *promise, uint64_t pass);

#endif
