/* SPDX-License-Identifier: MIT */
/*
 * See promise.h. The owner makes the promise, and callers read it.
 *
 *   caller                               owner
 *   push into the inbox                  look_by := later
 *   load pass, look_by                   read the inbox once more
 *   deadline < look_by: wake
 *
 * All four are seq_cst, which makes one outcome impossible: the caller reads the old, earlier
 * promise and does not wake the owner, and the owner's second reading misses the entry. Lowering
 * the promise needs no second reading. A caller that read the later promise has woken the owner,
 * and the eventfd stays readable.
 *
 * If a caller finds its slot pushed by another thread, it pushes nothing. It has read PUSHED in the
 * pair, and the other thread set PUSHED after it had filled the cell. So the cell was filled before
 * the caller's load, in the order of seq_cst accesses too (in RC11 that order follows
 * happens-before).
 *
 * A caller records a wake by the number of the pass, after sending it. If it recorded first and was
 * then stopped, no other caller would wake the owner. If it lowered the promise instead, it could
 * affect a later sleep. If a caller finds the current pass recorded, a wake was sent after this
 * pass was numbered, so the owner makes another pass and drains the inbox. Two wakes are harmless,
 * a lost wake is not. The record is relaxed: it names a pass that was read seq_cst, and if a caller
 * reads an older record, it only sends one more wake.
 *
 * Model: tests/models/promise.pml.
 */
#include "owner/promise.h"

void promise_init(struct promise *promise, uint64_t look_by_ns)
{
	/* Relaxed: not yet shared. Pass 0 is never recorded, since the first pass is number 2. */
	u64_store_relaxed(&promise->look_by_ns, look_by_ns);
	u64_store_relaxed(&promise->pass, 1);
	u64_store_relaxed(&promise->woken_pass, 0);
}

void promise_begin_pass(struct promise *promise)
{
	/* Relaxed load: the owner is its only writer. seq_cst store: before it drains the inbox. */
	u64_store_seq_cst(&promise->pass, u64_load_relaxed(&promise->pass) + 1);
}

bool promise_make(struct promise *promise, uint64_t look_by_ns)
{
	uint64_t before = u64_load_relaxed(&promise->look_by_ns); /* the owner's own store */

	if (look_by_ns != before)
		u64_store_seq_cst(&promise->look_by_ns, look_by_ns);
	return look_by_ns > before;
}

bool promise_woken(const struct promise *promise)
{
	/* Relaxed: a stale answer costs one more turn of the spin. */
	return u64_load_relaxed(&promise->woken_pass) == u64_load_relaxed(&promise->pass);
}

bool promise_wants_wake(const struct promise *promise, uint64_t deadline_ns, uint64_t *pass)
{
	/* The pass first: a wake that was recorded for this pass was sent after the pass began. */
	*pass = u64_load_seq_cst(&promise->pass);
	if (deadline_ns >= u64_load_seq_cst(&promise->look_by_ns))
		return false;
	return u64_load_relaxed(&promise->woken_pass) != *pass;
}

void promise_record_wake(struct promise *promise, uint64_t pass)
{
	/* Not a store: a caller that was stopped since an earlier pass must not hide a new wake. */
	u64_raise(&promise->woken_pass, pass);
}
