/* SPDX-License-Identifier: MIT */
/*
 * Model: tests/models/promise.pml.
 *
 *   caller                               owner
 *   push into the inbox                  look_by := later
 *   load pass, look_by                   read the inbox once more
 *   deadline < look_by: wake
 *
 * All seq_cst: if the caller reads the earlier promise and does not wake, the owner's second
 * reading finds its slot. A promise that becomes earlier needs no second reading.
 *
 * `woken_pass` is stored after the wake: a caller stopped in between must not keep others from
 * waking. It is a pass's number, since an earlier promise, stored late, would spoil a later sleep.
 * If it is stale, a caller wakes the owner in vain.
 */
#include "owner/promise.h"

void promise_init(struct promise *promise, uint64_t look_by_ns)
{
	/* Relaxed: not shared yet. No pass has the number 0. */
	u64_store_relaxed(&promise->look_by_ns, look_by_ns);
	u64_store_relaxed(&promise->pass, 1);
	u64_store_relaxed(&promise->woken_pass, 0);
}

void promise_begin_pass(struct promise *promise)
{
	/* seq_cst: before the drain */
	u64_store_seq_cst(&promise->pass, u64_load_relaxed(&promise->pass) + 1);
}

bool promise_make(struct promise *promise, uint64_t look_by_ns)
{
	uint64_t before = u64_load_relaxed(&promise->look_by_ns); /* relaxed: the owner's */

	if (look_by_ns != before)
		u64_store_seq_cst(&promise->look_by_ns, look_by_ns);
	return look_by_ns > before;
}

bool promise_woken(const struct promise *promise)
{
	/* Relaxed: a stale value costs one more spin. */
	return u64_load_relaxed(&promise->woken_pass) == u64_load_relaxed(&promise->pass);
}

void promise_record_wake(struct promise *promise, uint64_t pass)
{
	/* caller stopped in an earlier pass must not lower it */
	u64_raise(&promise->woken_pass, pass);
}
