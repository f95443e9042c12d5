/* SPDX-License-Identifier: MIT */
/*
 * A lane of the inbox: a ring buffer into which any thread pushes slots, and from which the owner
 * takes them. lane.c says how it works.
 */
#ifndef TIMERHUB_LANE_H
#define TIMERHUB_LANE_H

#include "base/atomic.h"
#include "base/bits.h"
#include "board/counter_board.h"
#include "timer/pair.h"

/*
 * A cell of the ring holds a slot in its low bits, above it this flag, which is set while the cell
 * is filled, and above that a count of the rounds through the ring.
 */
#define INBOX_FILLED ((uint64_t)1 << TIMER_SLOT_BITS)
#define INBOX_LAP ((uint64_t)2 << TIMER_SLOT_BITS)
#ifndef INBOX_LINE
#define INBOX_LINE (CACHE_LINE_BYTES / sizeof(atomic_u64))
#endif
/*
 * So many cells fit into the first-level cache, and usually hold all that is pushed while the owner
 * is busy.
 */
#ifndef INBOX_LANE_CELLS
#define INBOX_LANE_CELLS 2048
#endif
_Static_assert(INBOX_LANE_CELLS % INBOX_LINE == 0, "a lap ends with a cache line");

/* A ring buffer for the threads on some of the CPUs. Only the owner takes slots out of it. */
struct inbox_lane {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 *cells;
	struct board_lane *notes; /* its counters for timerhub-top; NULL if not observable */
	/*
	 * Where a producer begins to search for an empty cell. Producers write `tail` and
	 * `spilled`.
	 */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 tail;
	atomic_u64 spilled; /* how many slots its producers have put into the map */
	/*
	 * The position of the next slot to be taken out. The thread that takes slots, the owner, is
	 * the only one that writes `head`, `drained` and `end`.
	 */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 head;
	atomic_u64 drained; /* what `spilled` was when the last drain began */
	uint64_t end;       /* where the present drain ends */
};

/*
 * Puts a slot into the lane, a ring buffer, and stores its position in *ret_place. Returns false if
 * the lane is full. Any thread or signal handler may call it.
 */
bool lane_push(struct inbox_lane *lane, uint32_t slot, uint64_t *ret_place);

/* ---- calls of the owner ---- */

/* Begins to take out everything that was pushed before this call. */
void lane_begin(struct inbox_lane *lane);

/*
 * Takes up to `max` of the slots that were pushed into the lane before lane_begin(), and returns
 * how many.
 */
unsigned lane_take(struct inbox_lane *lane, uint32_t *slots, unsigned max);

bool lane_empty(const struct inbox_lane *lane);

#endif
