/* SPDX-License-Identifier: MIT */
/*
 * Consumers copy the handles between head and tail, then move the head by a CAS. The head only
 * grows, so success proves that no copied cell had been filled again; hence cells are loaded
 * relaxed. The owner restarts an empty one at the array's beginning, so a steadily used outbox
 * stays in a few cache lines.
 *
 * During a compaction it looks empty: TAIL_COMPACTING, set before the head moves and cleared by
 * the publication, says that handles will come back.
 *
 * Labels: [outbox] outbox_publish, outbox_compact → outbox_take_before: the handles, and the
 *         timers' state before.
 *         [outbox-room] outbox_take_before → outbox_has_room: the cells have been copied.
 *         [outbox-compacting] outbox_compact → outbox_exhausted: the tail says so.
 */
#include "queue/outbox.h"

#include "base/invariant.h"
#include "base/test_point.h"

/* cells (32 KiB) before a restart */
#ifndef OUTBOX_RESTART
#define OUTBOX_RESTART 4096
#endif
#define TAIL_COMPACTING ((uint64_t)1 << 63)

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

/* If all were taken, and none is unpublished. */
static void outbox_restart(struct outbox *outbox)
{
	uint64_t begin = (outbox->put + outbox->mask) & ~outbox->mask;
	uint64_t head = outbox->put;

	if ((outbox->put & outbox->mask) < OUTBOX_RESTART)
		return;
	/*
	 * A new head beyond an old tail means empty. Relaxed: the acquire load of the head says
	 * that the cells have been copied.
	 */
	if (!u64_cas_relaxed(&outbox->head, &head, begin))
		return;
	outbox->put = begin;
	outbox->head_seen = begin;
	u64_store_relaxed(&outbox->tail, begin); /* relaxed: the store publishes no handle */
}

bool outbox_has_room(struct outbox *outbox)
{
	uint64_t used = outbox->put - outbox->head_seen; /* upper bound of the number of handles */

	/* at 0 and from OUTBOX_RESTART on, the head is read, for a restart */
	if (used > 0 && used < OUTBOX_RESTART && used <= outbox->mask)
		return true;
	outbox->head_seen = u64_load_acquire(&outbox->head); /* [outbox-room]: cells are copied */
	/* Relaxed: only the owner writes the tail. */
	if (outbox->head_seen == outbox->put && outbox->put == u64_load_relaxed(&outbox->tail))
		outbox_restart(outbox);
	return outbox->put - outbox->head_seen <= outbox->mask;
}

uint64_t outbox_put(struct outbox *outbox, uint64_t handle)
{
	uint64_t place = outbox->put++;

	invariant(place - outbox->head_seen <= outbox->mask);
	/* Relaxed: the tail publishes the handle. */
	u64_store_relaxed(&outbox->cells[place & outbox->mask], handle);
	return place;
}

void outbox_blank(struct outbox *outbox, uint64_t handle, uint32_t place)
{
	/*
	 * The number of cells divides 2^32. A free cell is filled before use, so blanking it is
	 * harmless.
	 */
	atomic_u64 *cell = &outbox->cells[place & outbox->mask];

	/* Relaxed: the tail carries it to who sees the handle put next. */
	if (u64_load_relaxed(cell) == handle)
		u64_store_relaxed(cell, 0);
}

void outbox_publish(struct outbox *outbox)
{
	/* [outbox] seq_cst: store the tail before notifier_signal() loads `signalled`. */
	u64_store_seq_cst(&outbox->tail, outbox->put);
}

unsigned outbox_compact(struct outbox *outbox, outbox_keep_fn *keep, void *context)
{
	uint64_t end = outbox->put;
	uint64_t head = u64_load_relaxed(&outbox->head); /* head is a guess until the CAS */

	/* [outbox] */
	u64_store_release(&outbox->tail, end | TAIL_COMPACTING);
	/* [outbox-compacting]: who acquires the new head sees the flag. [outbox-room] */
	while (!u64_cas_acq_rel(&outbox->head, &head, end)) {
	}
	outbox->head_seen = end;
	test_point(TEST_POINT_OUTBOX_TAKEN_OUT);
	/* A handle is read before its cell is filled. */
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
		/* [outbox]: may miss a new event; outbox_count() does not */
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
		/* [outbox-room] */
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
	/* Relaxed: a stale head makes the count too high at most. */
	uint64_t head = u64_load_relaxed(&outbox->head);
	uint64_t tail = u64_load_seq_cst(&outbox->tail) & ~TAIL_COMPACTING;

	return head < tail ? tail - head : 0;
}

bool outbox_exhausted(const struct outbox *outbox)
{
	uint64_t head = u64_load_acquire(&outbox->head); /* [outbox-compacting]: carries the tail */

	/*
	 * With the flag the tail is beyond any head. Relaxed: the load of the head, or an earlier
	 * outbox_count(), has acquired it.
	 */
	return head >= u64_load_relaxed(&outbox->tail);
}
