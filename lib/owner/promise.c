/* SPDX-License-Identifier: MIT */
/*
 * The promise is the time by which the owner will look into its inbox again. A caller that has
 * changed a timer wakes the owner only if the timer is due earlier than that. No wake-up is lost,
 * because the accesses have this order:
 *
 *   caller                               owner
 *   push into the inbox                  look_by := later
 *   load pass, look_by                   read the inbox once more
 *   deadline < look_by: wake
 *
 * All of these are seq_cst. So if the caller still reads the earlier promise, and therefore does
 * not wake, the owner's second reading of the inbox finds its slot. A promise that becomes earlier
 * needs no second reading.
 *
 * A wake is noted in `woken_pass` only after it was sent, because a caller that is stopped in
 * between must not keep others from waking. What is noted is the number of a pass, and not an
 * earlier promise: a promise that such a caller stored much later would be taken for that of a
 * later sleep. If the number is out of date, somebody wakes the owner in vain, and no harm is done.
 */
#include "owner/promise.h"

#include "base/invariant.h"

void promise_init(struct promise *promise, uint64_t look_by_ns)
{
	/*
	 * Relaxed is enough, because no other thread has the promise yet. Passes are counted from
	 * 1, so 0 means that nobody has woken the owner.
	 */
	u64_store_relaxed(&promise->look_by_ns, look_by_ns);
	u64_store_relaxed(&promise->pass, 1);
	u64_store_relaxed(&promise->woken_pass, 0);
}

void promise_begin_pass(struct promise *promise)
{
	/*
	 * This must be seq_cst, like a producer's loads of the pass and the promise: see the head
	 * of inbox.c.
	 */
	u64_store_seq_cst(&promise->pass, u64_load_relaxed(&promise->pass) + 1);
}

bool promise_make(struct promise *promise, uint64_t look_by_ns)
{
	uint64_t before = u64_load_relaxed(&promise->look_by_ns); /* relaxed: the owner's own */

	if (look_by_ns != before)
		u64_store_seq_cst(&promise->look_by_ns, look_by_ns);
	return look_by_ns > before;
}

bool promise_woken(const struct promise *promise)
{
	/* Relaxed is enough: if a value is out of date, the owner only spins once more. */
	return u64_load_relaxed(&promise->woken_pass) == u64_load_relaxed(&promise->pass);
}

void promise_record_wake(struct promise *promise, uint64_t pass)
{
	/*
	 * Relaxed is enough, because this thread has loaded `pass` from promise->pass, and that
	 * number never falls.
	 */
	invariant(pass > 0 && pass <= u64_load_relaxed(&promise->pass));
	/* Never lower the number: another thread may have recorded a later pass already. */
	u64_raise(&promise->woken_pass, pass);
}
