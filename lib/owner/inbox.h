/* SPDX-License-Identifier: MIT */
/*
 * Carries from callers to the owner the slots that the owner must process. Many producers, one
 * consumer, lock-free. A slot has one entry. If an armer finds that another thread has claimed the
 * push and not made it, the armer adds an entry. There are more cells than slots, so a push always
 * finds an empty cell.
 */
#ifndef TIMERHUB_INBOX_H
#define TIMERHUB_INBOX_H

#include "base/atomic.h"
#include "base/board.h"
#include "base/memory.h"

/* One lane: a ring buffer of cells for the threads on some of the CPUs. */
struct inbox_lane {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 *cells; /* fixed at open, on a line of their own */
	struct board_lane *notes;                     /* on the board; NULL: not observable */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 tail; /* a line; no earlier line has an empty cell */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 head; /* next cell to take; the owner writes */
	uint64_t end;                               /* where this drain ends; only the owner's */
};

struct inbox {
	struct inbox_lane *lanes;
	uint32_t lane_mask;   /* a power of two, minus one */
	uint32_t lane_shift;  /* each lane has 2^lane_shift cells */
	uint64_t ask_mask;    /* ask_mask + 1, a power of two: pushes to a lane between counts */
	struct memory memory; /* holds lanes and cells */
};

/* Returns 0 or -ENOMEM. Each slot has a cell. `notes`: BOARD_LANES_MAX of them, or NULL. */
int inbox_open(struct inbox *inbox, uint32_t capacity, struct board_lane *notes);
void inbox_close(struct inbox *inbox);

/*
 * Add an entry. Any thread, signal-safe. While many entries wait, or a lane is half full, some
 * calls return true: the owner must then drain the inbox soon, whatever the deadline.
 */
bool inbox_push(struct inbox *inbox, unsigned cpu, uint32_t slot);

/* Owner: begin a drain. inbox_take() returns all entries that were pushed before this. */
void inbox_begin(struct inbox *inbox);

/* Owner: take up to `max` slots. Returns their number; 0 when this drain has ended. */
unsigned inbox_take(struct inbox *inbox, uint32_t *slots, unsigned max);

/* Owner: is the inbox empty? */
bool inbox_empty(const struct inbox *inbox);

#endif
