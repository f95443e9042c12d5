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

/* Puts a slot into the lane, and stores its position. Returns false if the lane is full. */
bool lane_push(struct inbox_lane *lane, uint32_t slot, uint64_t *ret_place);

/* ---- calls of the owner ---- */

/* Begins a drain of what was pushed before this call. */
void lane_begin(struct inbox_lane *lane);

/* Takes up to `max` slots from before the drain's end. Returns how many. */
unsigned lane_take(struct inbox_lane *lane, uint32_t *slots, unsigned max);

/* Tells whether the lane has no slot. */
bool lane_empty(const struct inbox_lane *lane);

#endif
