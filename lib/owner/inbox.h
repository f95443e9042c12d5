/* SPDX-License-Identifier: MIT */
/*
 * Carries slots from callers to the owner, which must process each slot. The inbox has many
 * producers and one consumer, and is lock-free. A slot usually has one entry. If another thread has
 * claimed the push of a slot but has not pushed yet, an armer adds a second entry. The inbox has
 * more cells than slots, so a push always finds an empty cell.
 */
#ifndef TIMERHUB_INBOX_H
#define TIMERHUB_INBOX_H

#include "base/atomic.h"
#include "base/counter_board.h"
#include "base/memory.h"

/* One lane: a ring buffer of cells for the threads on some of the CPUs. */
struct inbox_lane {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 *cells; /* the lane's cells; fixed at open */
	struct board_lane *notes; /* notes on the board, or NULL if the hub is not observable */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 tail; /* position where producers start */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 head; /* next position that the owner takes */
	uint64_t end;                               /* end of the owner's present drain */
};

struct inbox {
	struct inbox_lane *lanes;
	uint32_t lane_mask;   /* one less than the number of lanes, which is a power of two */
	uint32_t lane_shift;  /* each lane has 2^lane_shift cells */
	uint64_t ask_mask;    /* entries are counted after every ask_mask + 1 pushes into a lane */
	struct memory memory; /* the mapping that holds the lanes and the cells */
};

/* Returns 0 or -ENOMEM. `notes` has BOARD_LANES_MAX elements; NULL: the hub is not observable. */
int inbox_open(struct inbox *inbox, uint32_t capacity, struct board_lane *notes);
void inbox_close(struct inbox *inbox);

/*
 * Add an entry for the slot. Thread-safe and async-signal-safe. Returns true if the owner must
 * drain the inbox soon. inbox_push() checks this only in some calls.
 */
bool inbox_push(struct inbox *inbox, unsigned cpu, uint32_t slot);

/* Owner: begin a drain. inbox_take() then returns all entries pushed before inbox_begin(). */
void inbox_begin(struct inbox *inbox);

/* Owner: take up to `max` slots. Returns the number of slots; 0 means that the drain has ended. */
unsigned inbox_take(struct inbox *inbox, uint32_t *slots, unsigned max);

/* Owner: returns whether the inbox is empty. */
bool inbox_empty(const struct inbox *inbox);

#endif
