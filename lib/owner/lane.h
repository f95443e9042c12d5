/* SPDX-License-Identifier: MIT */
/*
 * A lane of the inbox: a ring buffer into which any thread pushes slots, and from which the owner
 * takes them.
 */
#ifndef TIMERHUB_LANE_H
#define TIMERHUB_LANE_H

#include "base/atomic.h"
#include "base/bits.h"
#include "base/counter_board.h"
#include "base/invariant.h"
#include "timer/pair.h"

/* A cell holds a slot, above it this flag that says so, and above that the lap. */
#define INBOX_FILLED ((uint64_t)1 << TIMER_SLOT_BITS)
#define INBOX_LAP ((uint64_t)2 << TIMER_SLOT_BITS)
#ifndef INBOX_LINE
#define INBOX_LINE (CACHE_LINE_BYTES / sizeof(atomic_u64))
#endif
/* A lane fits into the first-level cache, and holds what comes while the owner is busy. */
#ifndef INBOX_LANE_CELLS
#define INBOX_LANE_CELLS 2048
#endif
_Static_assert(INBOX_LANE_CELLS % INBOX_LINE == 0, "a lap ends with a cache line");

/* A ring buffer for the threads on some of the CPUs. Only the owner takes from it. */
struct inbox_lane {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 *cells;
	struct board_lane *notes; /* NULL: the hub is not observable */
	/* Written by producers: where they begin to look for an empty cell. */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 tail;
	atomic_u64 spilled; /* how many slots its producers have put into the map */
	/* Written by the owner: the position of the next cell to take. */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 head;
	atomic_u64 drained; /* what `spilled` was when the last drain began */
	uint64_t end;       /* where the present drain ends */
};

/* Returns the cell of a position. Positions count over all laps. */
static inline atomic_u64 *lane_cell(const struct inbox_lane *lane, uint64_t place)
{
	return &lane->cells[place % INBOX_LANE_CELLS];
}

/* Puts a slot into the lane, and stores its position. Returns false if the lane is full. */
bool lane_push(struct inbox_lane *lane, uint32_t slot, uint64_t *ret_place);

/* ---- calls of the owner ---- */

/* Begins a drain of what was pushed before this call. */
static inline void lane_begin(struct inbox_lane *lane)
{
	uint64_t spilled = u64_load_relaxed(&lane->spilled); /* relaxed: see inbox_count() */

	/*
	 * The end is fixed now, because producers that are fast enough could otherwise keep the
	 * owner draining while timers become overdue. A cell that was filled before this call lies
	 * less than a cache line after the tail.
	 */
	lane->end = u64_load_seq_cst(&lane->tail) + INBOX_LINE;
	invariant(u64_load_relaxed(&lane->head) <= lane->end);
	if (spilled == u64_load_relaxed(&lane->drained))
		return;
	u64_store_relaxed(&lane->drained, spilled);
	if (lane->notes)
		u64_store_relaxed(&lane->notes->drained, spilled);
}

/* Takes up to `max` slots from before the drain's end. Returns how many. */
unsigned lane_take(struct inbox_lane *lane, uint32_t *slots, unsigned max);

/* Tells whether the lane has no slot. */
static inline bool lane_empty(const struct inbox_lane *lane)
{
	const atomic_u64 *cell = lane_cell(lane, u64_load_relaxed(&lane->head));

	return (u64_load_seq_cst(cell) & INBOX_FILLED) == 0;
}

#endif
