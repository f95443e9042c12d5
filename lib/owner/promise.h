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
	_Alignas(CACHE_LINE_BYTES) atomic_u64 look_by_ns; /* promise, written by the owner */
	atomic_u64 pass;                                  /* current pass, written by the owner */
	atomic_u64 woken_pass; /* latest pass in which a caller woke the owner; set by callers */
};

/* 0 if a pass follows, UINT64_MAX if the owner waits for a wake. */
void promise_init(struct promise *promise, uint64_t look_by_ns);

/* Owner: number a new pass, before the clock is read and the inbox drained. */
void promise_begin_pass(struct promise *promise);

/* Owner. True: the inbox must be read once more. */
bool promise_make(struct promise *promise, uint64_t look_by_ns);

/* Owner: has a caller woken it in this pass? A hint. */
bool promise_woken(const struct promise *promise);

/* After a push: wake the owner, and give `*pass` to promise_record_wake()? */
static inline bool promise_wants_wake(const struct promise *promise, uint64_t deadline_ns,
                                      uint64_t *pass)
{
	/* First: a wake that is recorded for this pass was sent after it began. */
	*pass = u64_load_seq_cst(&promise->pass);
	if (deadline_ns >= u64_load_seq_cst(&promise->look_by_ns))
		return false;
	return u64_load_relaxed(&promise->woken_pass) != *pass;
}

/* So that other callers need not wake the owner too. */
void promise_record_wake(struct promise *promise, uint64_t pass);

#endif
