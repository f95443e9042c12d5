/* SPDX-License-Identifier: MIT */
/*
 * A consumer copies the handles between head and tail, and then moves the head by a
 * compare-and-swap (CAS). Positions only grow, so if the swap succeeds, no cell that was copied had
 * been filled again. That is why the cells themselves can be loaded with relaxed order.
 *
 * When the outbox is empty, the owner now and then begins anew at the beginning of the array, so
 * that an outbox that never holds much stays within a few cache lines.
 *
 * During a compaction the outbox looks empty. So that no consumer concludes that nothing will come,
 * the owner sets TAIL_COMPACTING before it moves the head; the next publication clears it.
 *
 * Labels: [outbox] outbox_publish, outbox_compact → outbox_take_before: the handles, and the
 *         timers' state before.
 *         [outbox-room] outbox_take_before → outbox_has_room: the cells have been copied.
 *         [outbox-compacting] outbox_compact → outbox_exhausted: the tail says so.
 */
#include "queue/outbox.h"

#include "base/invariant.h"
#include "base/test_point.h"
#include "timer/pair.h"

/* An empty outbox begins anew at the array's beginning after so many cells (32 KiB). */
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

/* Begins anew at the beginning of the array, if all handles were published and taken. */
static void outbox_restart(struct outbox *outbox)
{
	uint64_t begin = (outbox->put + outbox->mask) & ~outbox->mask;
	uint64_t head = outbox->put;

	if ((outbox->put & outbox->mask) < OUTBOX_RESTART)
		return;
	/*
	 * A consumer that sees the new head and the old tail takes the outbox for empty, which it
	 * is. Relaxed: the caller's acquire load of the head says that the cells have been copied.
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

	/*
	 * The head is on a line that consumers write, so it is read only if it must be: if there
	 * seems to be no room, and if it may be time to begin anew.
	 */
	if (used > 0 && used < OUTBOX_RESTART && used <= outbox->mask)
		return true;
	/*
	 * [outbox-room]: the cells before the head have been copied, so they may be filled again.
	 */
	outbox->head_seen = u64_load_acquire(&outbox->head);
	/* Relaxed: only the owner writes the tail. */
	if (outbox->head_seen == outbox->put && outbox->put == u64_load_relaxed(&outbox->tail))
		outbox_restart(outbox);
	return outbox->put - outbox->head_seen <= outbox->mask;
}

uint64_t outbox_put(struct outbox *outbox, uint64_t handle)
{
	uint64_t place = outbox->put++;

	invariant(place - outbox->head_seen <= outbox->mask);
	/* Relaxed: outbox_publish() lets consumers see it. */
	u64_store_relaxed(&outbox->cells[place & outbox->mask], handle);
	return place;
}

void outbox_blank(struct outbox *outbox, uint64_t handle, uint32_t place)
{
	/*
	 * The low bits of the position are enough, because the number of cells divides 2^32. If the
	 * cell is free by now, blanking it does no harm, since it is filled before it is used.
	 */
	atomic_u64 *cell = &outbox->cells[place & outbox->mask];

	/* Relaxed: whoever sees the handle that is put next sees this too, by way of the tail. */
	if (u64_load_relaxed(cell) == handle)
		u64_store_relaxed(cell, 0);
}

void outbox_publish(struct outbox *outbox)
{
	/*
	 * [outbox]: a consumer that sees this tail may read the cells before it. Seq_cst, because
	 * notifier_signal() loads `signalled` next; notifier.c draws the two columns.
	 */
	u64_store_seq_cst(&outbox->tail, outbox->put);
}

unsigned outbox_compact(struct outbox *outbox, outbox_keep_fn *keep, void *context)
{
	uint64_t end = outbox->put;
	uint64_t head = u64_load_relaxed(&outbox->head); /* relaxed: a guess, until the CAS */

	/* [outbox]: what was put may be taken by consumers until the head has moved. */
	u64_store_release(&outbox->tail, end | TAIL_COMPACTING);
	/*
	 * [outbox-compacting]: whoever acquires the new head sees the flag in the tail.
	 * [outbox-room]: the cells that consumers have taken may be filled again.
	 */
	while (!u64_cas_acq_rel(&outbox->head, &head, end)) {
	}
	outbox->head_seen = end;
	test_point(TEST_POINT_OUTBOX_TAKEN_OUT);
	/* No handle is lost, because each is read before its cell is filled. */
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
		 * [outbox]: the cells before this tail may be read. The load may miss an event that
		 * was just published; outbox_count() does not.
		 */
		uint64_t tail = u64_load_acquire(&outbox->tail) & ~TAIL_COMPACTING;
		uint64_t stop = u64_min(tail, end);
		unsigned count;

		if (head >= stop)
			return 0;
		count = stop - head < max ? (unsigned)(stop - head) : max;
		for (unsigned i = 0; i < count; i++)
			/* Relaxed: if the cell was filled again, the CAS fails. */
			handles[i] = u64_load_relaxed(&outbox->cells[(head + i) & outbox->mask]);
		*ret_tail = tail;
		/* [outbox-room]: from here on the owner may fill the cells again. */
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
	/* Relaxed: an old head only makes the count too high. */
	uint64_t head = u64_load_relaxed(&outbox->head);
	uint64_t tail = u64_load_seq_cst(&outbox->tail) & ~TAIL_COMPACTING;

	return head < tail ? tail - head : 0;
}

bool outbox_exhausted(const struct outbox *outbox)
{
	/* [outbox-compacting]: if a compaction has moved the head, the flag is seen in the tail. */
	uint64_t head = u64_load_acquire(&outbox->head);

	/*
	 * With the flag set, the tail is greater than any head. Relaxed: the load of the head, or
	 * an earlier outbox_count(), has acquired it.
	 */
	return head >= u64_load_relaxed(&outbox->tail);
}
