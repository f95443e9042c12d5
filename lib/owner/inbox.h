/* SPDX-License-Identifier: MIT */
/*
 * Callers → owner: slots to look at. Many producers, one consumer, lock-free. A slot has one entry.
 * It has one more for each armer that found another thread stopped in submitting it, until the
 * owner takes that entry. There are more cells than slots, so that there is always room.
 */
#ifndef TIMERHUB_INBOX_H
#define TIMERHUB_INBOX_H

#include "base/atomic.h"
#include "base/board.h"
#include "base/memory.h"

/* One lane: a ring of cells for the threads on some of the CPUs. */
struct inbox_lane {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 *cells; /* fixed at open, on a line of their own */
	struct board_lane *notes;                     /* on the board; NULL: not observable */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 tail; /* a place not behind the first unfilled line */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 head; /* next place to take; the owner writes */
	uint64_t end;                               /* where this look ends; the owner's alone */
};

struct inbox {
	struct inbox_lane *lanes;
	uint32_t lane_mask;   /* a power of two less one */
	uint32_t lane_shift;  /* each lane has 2^lane_shift cells */
	uint64_t ask_mask;    /* a power of two less one: after so many pushes to a lane, count */
	struct memory memory; /* holds lanes and cells */
};

/* 0, or -ENOMEM. Room for `capacity` slots. */
int inbox_open(struct inbox *inbox, uint32_t capacity);
void inbox_close(struct inbox *inbox);

/* Leave notes, BOARD_LANES_MAX of them, from now on. Before the first push. */
void inbox_observe(struct inbox *inbox, struct board_lane *notes);

/*
 * Any thread, signal-safe. True now and then while many entries wait, or a lane is half full: the
 * owner should be told, whatever the deadline.
 */
bool inbox_push(struct inbox *inbox, unsigned cpu, uint32_t slot);

/* Owner: begin a look. What was pushed before this is found by inbox_take(). */
void inbox_begin(struct inbox *inbox);

/* Owner: take up to `max` slots; 0 when this look is over. */
unsigned inbox_take(struct inbox *inbox, uint32_t *slots, unsigned max);

/* Owner: is there anything in it? */
bool inbox_empty(const struct inbox *inbox);

#endif
