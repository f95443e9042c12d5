/* SPDX-License-Identifier: MIT */
/*
 * The promise and its passes. The owner makes it, callers read it.
 *
 *   caller                               owner
 *   publish in the inbox                 look_by := later
 *   load pass, look_by                   look at the inbox once more
 *   deadline < look_by: wake
 *
 * All four are seq_cst, which makes one outcome impossible: the caller reads the old, earlier
 * promise and does not wake, and the owner's second look misses the entry. Lowering the promise
 * needs no second look: a caller that read the later promise has woken the owner, and the wake is
 * sticky.
 *
 * A caller that finds its slot pushed by another thread publishes nothing. It has read so in the
 * slot's word, which that thread changed after it had filled the cell; so the filling comes before
 * the caller's load all the same, also in the order of seq_cst accesses (RC11's goes through what
 * happens before).
 *
 * Why a wake is recorded by pass number, and after it was sent: if a caller claimed the right to
 * wake before it wakes, a stopped claimant would silence all others; if it lowered the promise for
 * the owner, it might hit a later sleep than the one that it ended. A caller that finds the current
 * pass recorded knows that a wake was sent after this pass was numbered, so that the next pass,
 * which empties the inbox, is certain. Two wakes are harmless, a lost one is not. The record itself
 * is relaxed: it names a pass, which was read seq_cst, and a record read too late costs a wake.
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
	/*
	 * Relaxed load: the owner is its only writer. seq_cst store: before the look at the inbox.
	 */
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
	/* Acquire is not needed: a stale answer costs the spinner one more turn. */
	return u64_load_relaxed(&promise->woken_pass) == u64_load_relaxed(&promise->pass);
}

bool promise_wants_wake(const struct promise *promise, uint64_t deadline_ns, uint64_t *pass)
{
	/* The pass first: a wake recorded under it must have been sent after it began. */
	*pass = u64_load_seq_cst(&promise->pass);
	if (deadline_ns >= u64_load_seq_cst(&promise->look_by_ns))
		return false;
	return u64_load_relaxed(&promise->woken_pass) != *pass;
}

void promise_record_wake(struct promise *promise, uint64_t pass)
{
	uint64_t before = u64_load_relaxed(&promise->woken_pass);

	/* Never back: a caller delayed since an earlier pass must not hide the wake of this one. */
	while (before < pass && !u64_cas_relaxed(&promise->woken_pass, &before, pass)) {
	}
}
