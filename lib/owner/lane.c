/* SPDX-License-Identifier: MIT */
/*
 * A lane is a ring buffer of the inbox (lane.h). A cell of a lane holds a slot, a flag that says
 * whether the cell is filled, and the lap, which counts the rounds through the ring. A producer,
 * the thread that pushes a slot, claims and fills a cell by one compare-and-swap, and the cells are
 * filled in order. So a producer that is stopped never leaves a cell that is claimed but still
 * empty, which the owner could not pass.
 *
 * An empty cell has the lap too. So if a producer was stopped for a whole round, its
 * compare-and-swap fails, because it expects the empty cell of the earlier round. The lap wraps, so
 * lane_push() looks at the sign of the difference to find out whether a cell is of an earlier
 * round. If it is, the owner has not yet taken the slot that was put into the cell in that round,
 * and the ring is full.
 *
 * The tail tells producers where to look for an empty cell. They move the tail only once per cache
 * line of cells, and search on from where it is then, because other producers may have filled many
 * cells meanwhile.
 *
 * lane_begin() sets the end of what the owner takes, because otherwise fast producers could keep it
 * busy for ever. All the cells of the cache line that begins at the tail can be filled before the
 * tail moves, so the end is after this line.
 *
 * lane_take() empties a cell by a relaxed store. A producer that still reads the slot in it takes
 * the ring for full, and puts its own slot into the spill map.
 *
 * lane_push() prefetches cells that producers will fill soon, two cache lines further on. The owner
 * has emptied them, so they are in the cache of the owner's CPU.
 *
 * The head of inbox.c says why the accesses are seq_cst.
 */
#include "owner/lane.h"

#include "base/invariant.h"
#include "base/test_point.h"

/* Returns the cell for a position in the lane. Positions do not start again when the ring does. */
static atomic_u64 *lane_cell(const struct inbox_lane *lane, uint64_t place)
{
	return &lane->cells[place % INBOX_LANE_CELLS];
}

/*
 * Returns the value that the cell for the position `place` has while it is empty. The value is
 * another one each time that the positions have gone around the ring.
 */
static uint64_t cell_empty_at(uint64_t place)
{
	return place / INBOX_LANE_CELLS * INBOX_LAP;
}

/*
 * Moves the tail forward to `place`, unless another thread has moved it further, and returns where
 * it is then. All cells before `place` must be filled.
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
		/* The cell still has the slot of the previous round, so the ring is full. */
		if ((int64_t)(seen - empty) < 0)
			return false;
		if (++place % INBOX_LINE == 0) {
			place = lane_advance_tail(lane, place);
			__builtin_prefetch(lane_cell(lane, place + 2 * INBOX_LINE), 1);
		}
	}
}

void lane_begin(struct inbox_lane *lane)
{
	uint64_t spilled = u64_load_relaxed(&lane->spilled); /* relaxed: see inbox_count() */

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
		 * Relaxed is enough. To a producer that still sees the slot in this cell, the ring
		 * seems full, so it uses the spill map.
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
