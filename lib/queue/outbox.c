/* SPDX-License-Identifier: MIT */
/*
 * The outbox is a ring buffer, into which the owner puts the handles of expired timers, and from
 * which any number of consumers take them (outbox.h). A consumer copies the handles between head
 * and tail, and then moves the head by a compare-and-swap (CAS). Positions only grow, so if the CAS
 * succeeds, no cell that was copied had been filled again. That is why the cells themselves can be
 * loaded with relaxed order.
 *
 * When the outbox is empty, the owner now and then goes back to the beginning of the array, so that
 * an outbox that never holds much stays within a few cache lines. outbox_restart() moves the head
 * first, and then the tail. In between the head is greater than the tail, so consumers find the
 * outbox empty.
 *
 * outbox_has_room() loads the head only if it must, because consumers write the head, so that a
 * load often misses the cache. First it counts the cells from `head_seen`, the last head that the
 * owner knows. This count may be too high, but never too low. If it is not 0, but less than
 * OUTBOX_RESTART and than the number of cells, another handle fits. Otherwise it loads the head:
 * the outbox may have room all the same, or it may be empty and go back to the beginning.
 *
 * outbox_take_before() may miss an event that was published just now, because its load of the tail
 * has only acquire order. A consumer that gets nothing therefore clears the eventfd, and then calls
 * outbox_count(), in which that load is seq_cst (notifier.c).
 *
 * outbox_blank() replaces a handle by 0. If a consumer has already taken this handle, the cell is
 * unused, and the 0 does no harm.
 *
 * While the owner compacts the outbox, that is, removes the handles of timers that were cancelled
 * or re-armed, the outbox looks empty. So that no consumer concludes that nothing will come, the
 * owner sets TAIL_COMPACTING before it moves the head. The next outbox_publish() clears it. It is
 * the highest bit, and makes the tail greater than any head, so outbox_exhausted() returns false.
 * Compacting also works in a full ring buffer: outbox_compact() reads a cell before it puts another
 * handle into this cell.
 *
 * Labels: [outbox] outbox_publish, outbox_compact → outbox_take_before: whoever loads the new tail
 *         also sees the handles at all positions below it, and what the owner had done to their
 *         timers.
 *         [outbox-room] outbox_take_before → outbox_has_room, outbox_compact: the handles below the
 *         new head have been copied, so the owner may fill their cells again.
 *         [outbox-compacting] outbox_compact → outbox_exhausted: whoever loads the new head also
 *         sees TAIL_COMPACTING, or a still newer tail.
 */
#include "queue/outbox.h"

#include "base/invariant.h"
#include "base/test_point.h"
#include "timer/pair.h"

/*
 * An outbox that is empty again goes back to the beginning of its array once it has used so many
 * cells, 32 KiB, so that it stays in the cache.
 */
#ifndef OUTBOX_RESTART
#define OUTBOX_RESTART 4096
#endif
#define TAIL_COMPACTING ((uint64_t)1 << 63)
_Static_assert(2 * (uint64_t)TIMER_SLOTS_MAX + 2 <= (uint64_t)1 << 32,
               "the number of cells divides 2^32, as outbox_blank() needs");

int outbox_open(struct outbox *outbox, uint32_t capacity)
{
	uint64_t cells = bits_power_of_two(2 * (uint64_t)capacity + 2);
	int result = memory_reserve(&outbox->memory, cells * sizeof(atomic_u64));

	if (result < 0)
		return result;
	outbox->cells = outbox->memory.base;
	outbox->mask = cells - 1;
	return 0;
}

void outbox_close(struct outbox *outbox)
{
	memory_release(&outbox->memory);
}

/*
 * Makes the next handle of an empty outbox go to the beginning of the array, so that the outbox
 * stays in the cache. Does nothing until OUTBOX_RESTART cells were used.
 */
static void outbox_restart(struct outbox *outbox)
{
	uint64_t begin = (outbox->put + outbox->mask) & ~outbox->mask;
	uint64_t head = outbox->put;

	if ((outbox->put & outbox->mask) < OUTBOX_RESTART)
		return;
	/*
	 * Relaxed is enough: the owner has loaded this head with acquire order, and the CAS fails
	 * if the head has changed since.
	 */
	if (!u64_cas_relaxed(&outbox->head, &head, begin))
		return;
	outbox->put = begin;
	outbox->head_seen = begin;
	u64_store_relaxed(&outbox->tail, begin); /* relaxed: it publishes no handle */
}

bool outbox_has_room(struct outbox *outbox)
{
	uint64_t used = outbox->put - outbox->head_seen; /* at least the number of handles */

	/* Most calls return here, without loading `head`, which is often in another CPU's cache. */
	if (used > 0 && used < OUTBOX_RESTART && used <= outbox->mask)
		return true;
	/*
	 * Acquire: the handles below this head have been copied, so their cells may be filled
	 * again. [outbox-room]
	 */
	outbox->head_seen = u64_load_acquire(&outbox->head);
	/* Relaxed is enough, because only the owner writes the tail, and this is the owner. */
	if (outbox->head_seen == outbox->put && outbox->put == u64_load_relaxed(&outbox->tail))
		outbox_restart(outbox);
	return outbox->put - outbox->head_seen <= outbox->mask;
}

uint64_t outbox_put(struct outbox *outbox, uint64_t handle)
{
	uint64_t place = outbox->put++;

	invariant(place - outbox->head_seen <= outbox->mask);
	/*
	 * Relaxed is enough, because a consumer reads this cell only after it has seen the tail
	 * that outbox_publish() stores later.
	 */
	u64_store_relaxed(&outbox->cells[place & outbox->mask], handle);
	return place;
}

void outbox_blank(struct outbox *outbox, uint64_t handle, uint32_t place)
{
	/*
	 * The low 32 bits of a position are enough to find its cell, because the number of cells
	 * divides 2^32.
	 */
	atomic_u64 *cell = &outbox->cells[place & outbox->mask];

	/* Relaxed is enough, because only the owner writes cells, and this is the owner. */
	if (u64_load_relaxed(cell) == handle)
		/*
		 * Relaxed is enough: outbox_put() then stores the handle in another cell, and a
		 * consumer that finds the tail with which that cell is published also finds this 0.
		 */
		u64_store_relaxed(cell, 0);
}

void outbox_publish(struct outbox *outbox)
{
	/*
	 * The store is seq_cst, because notifier_signal() must load `signalled` after it: see the
	 * head of notifier.c.
	 */
	u64_store_seq_cst(&outbox->tail, outbox->put); /* [outbox] */
}

unsigned outbox_compact(struct outbox *outbox, outbox_keep_fn *keep, void *context)
{
	uint64_t end = outbox->put;
	uint64_t head = u64_load_relaxed(&outbox->head); /* relaxed: a guess, until the CAS */

	/* Release: a consumer that finds this tail also finds the handles below it. [outbox] */
	u64_store_release(&outbox->tail, end | TAIL_COMPACTING);
	/*
	 * From now on consumers find the outbox empty. Acquire: what they took has been copied.
	 * [outbox-room] Release: they see that the owner is compacting. [outbox-compacting]
	 */
	while (!u64_cas_acq_rel(&outbox->head, &head, end)) {
	}
	outbox->head_seen = end;
	test_point(TEST_POINT_OUTBOX_TAKEN_OUT);
	/* Append a copy of each old handle that `keep` accepts. */
	for (uint64_t place = head; place < end; place++) {
		uint64_t handle = u64_load_relaxed(&outbox->cells[place & outbox->mask]);

		if (keep(context, handle, outbox->put))
			(void)outbox_put(outbox, handle);
	}
	return (unsigned)(outbox->put - end);
}

unsigned outbox_take_before(struct outbox *outbox, uint64_t end, uint64_t *handles, unsigned max,
                            uint64_t *ret_tail)
{
	uint64_t head = u64_load_relaxed(&outbox->head);

	for (;;) {
		/*
		 * Acquire: this thread then finds the handles in all cells below this tail.
		 * [outbox]
		 */
		uint64_t tail = u64_load_acquire(&outbox->tail) & ~TAIL_COMPACTING;
		uint64_t stop = u64_min(tail, end);
		unsigned count;

		if (head >= stop)
			return 0;
		count = stop - head < max ? (unsigned)(stop - head) : max;
		for (unsigned i = 0; i < count; i++)
			/*
			 * Relaxed is enough. The value can be wrong only if another thread has
			 * moved `head` meanwhile, and then the CAS of `head` below fails.
			 */
			handles[i] = u64_load_relaxed(&outbox->cells[(head + i) & outbox->mask]);
		*ret_tail = tail;
		/*
		 * Release: when the owner finds this head, the handles below it have been copied,
		 * so it may fill their cells again. [outbox-room]
		 */
		if (u64_cas_release(&outbox->head, &head, head + count))
			return count;
	}
}

unsigned outbox_take(struct outbox *outbox, uint64_t *handles, unsigned max)
{
	uint64_t tail;

	return outbox_take_before(outbox, UINT64_MAX, handles, max, &tail);
}

uint64_t outbox_count(const struct outbox *outbox)
{
	/* Relaxed is enough: if the head is out of date, the count is only too high. */
	uint64_t head = u64_load_relaxed(&outbox->head);
	uint64_t tail = u64_load_seq_cst(&outbox->tail) & ~TAIL_COMPACTING;

	return head < tail ? tail - head : 0;
}

bool outbox_exhausted(const struct outbox *outbox)
{
	/*
	 * Acquire: if the owner has moved the head to compact the outbox, this thread also finds
	 * TAIL_COMPACTING in the tail. [outbox-compacting]
	 */
	uint64_t head = u64_load_acquire(&outbox->head);

	/* Relaxed is enough, because `head` was loaded with acquire order. */
	return head >= u64_load_relaxed(&outbox->tail);
}
