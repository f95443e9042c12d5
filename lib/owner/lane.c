/* SPDX-License-Identifier: MIT */
/*
 * A cell of a lane holds a slot, a flag that says it is filled, and the lap, which counts the
 * rounds through the ring. A producer claims and fills a cell by one compare-and-swap, and the
 * cells are filled in order. So a producer that is stopped never leaves a cell that is claimed but
 * empty, behind which the owner could not see.
 *
 * The tail is moved once per cache line only; at that point a producer goes on from where the tail
 * is by now, because others may have filled many cells. Why the accesses are seq_cst is said in
 * inbox.c.
 */
#include "owner/lane.h"

#include "base/invariant.h"
#include "base/test_point.h"

/* Returns the cell of a position. Positions count over all laps. */
static atomic_u64 *lane_cell(const struct inbox_lane *lane, uint64_t place)
{
	return &lane->cells[place % INBOX_LANE_CELLS];
}

/* Returns what the cell of this position holds while it is empty. */
static uint64_t cell_empty_at(uint64_t place)
{
	return place / INBOX_LANE_CELLS * INBOX_LAP;
}

/*
 * Moves the tail to `place`, before which all cells are filled, unless somebody has moved it
 * further. Returns where it is then.
 */
static uint64_t lane_advance_tail(struct inbox_lane *lane, uint64_t place)
{
	uint64_t tail = u64_load_seq_cst(&lane->tail);

	while (tail < place)
		if (u64_cas_seq_cst(&lane->tail, &tail, place))
			return place;
	return tail;
}

bool lane_push(struct inbox_lane *lane, uint32_t slot, uint64_t *ret_place)
{
	uint64_t place = u64_load_seq_cst(&lane->tail);

	for (;;) {
		atomic_u64 *cell = lane_cell(lane, place);
		uint64_t empty = cell_empty_at(place);
		uint64_t seen;

		test_point(TEST_POINT_PUSH_AT_CELL);
		seen = u64_load_seq_cst(cell);
		if (seen == empty && u64_cas_seq_cst(cell, &seen, empty | INBOX_FILLED | slot)) {
			*ret_place = place;
			return true;
		}
		/*
		 * If the cell still holds a slot of the previous lap, the lane is full. The
		 * difference is taken as a signed number, because laps wrap around.
		 */
		if ((int64_t)(seen - empty) < 0)
			return false;
		if (++place % INBOX_LINE == 0) {
			place = lane_advance_tail(lane, place);
			/* The owner wrote these cells last, so they are in another CPU's cache. */
			__builtin_prefetch(lane_cell(lane, place + 2 * INBOX_LINE), 1);
		}
	}
}

void lane_begin(struct inbox_lane *lane)
{
	uint64_t spilled = u64_load_relaxed(&lane->spilled); /* relaxed: see inbox_count() */

	/*
	 * The end is fixed now, because producers that are fast enough could otherwise keep the
	 * owner draining while timers become overdue. It lies a cache line of cells after the tail:
	 * producers move the tail only once a line, so a cell that was filled before this call can
	 * lie behind it, but less than a line.
	 */
	lane->end = u64_load_seq_cst(&lane->tail) + INBOX_LINE;
	invariant(u64_load_relaxed(&lane->head) <= lane->end);
	if (spilled == u64_load_relaxed(&lane->drained))
		return;
	u64_store_relaxed(&lane->drained, spilled);
	if (lane->notes)
		u64_store_relaxed(&lane->notes->drained, spilled);
}

unsigned lane_take(struct inbox_lane *lane, uint32_t *slots, unsigned max)
{
	uint64_t head = u64_load_relaxed(&lane->head); /* relaxed: the owner's own */
	unsigned count = 0;

	for (; count < max && head < lane->end; head++) {
		atomic_u64 *cell = lane_cell(lane, head);
		uint64_t seen = u64_load_seq_cst(cell);

		if ((seen & INBOX_FILLED) == 0)
			break;
		slots[count++] = (uint32_t)(seen & (INBOX_FILLED - 1));
		/*
		 * Relaxed: a producer that still sees the old value only takes the lane for full.
		 */
		u64_store_relaxed(cell, cell_empty_at(head) + INBOX_LAP);
	}
	if (count > 0)
		u64_store_relaxed(&lane->head, head);
	if (count > 0 && lane->notes)
		u64_store_relaxed(&lane->notes->head, head);
	return count;
}

bool lane_empty(const struct inbox_lane *lane)
{
	const atomic_u64 *cell = lane_cell(lane, u64_load_relaxed(&lane->head));

	return (u64_load_seq_cst(cell) & INBOX_FILLED) == 0;
}
