/* SPDX-License-Identifier: MIT */
/*
 * The inbox carries slots from callers to the owner: "look at slot 17".
 *
 * A caller can be a signal handler, and any other can be preempted in the middle of a push and not
 * run again for a long time. So a push must never wait for another thread, and can never be
 * refused. Two structures together do that. A lane is a small ring buffer for the threads on some
 * of the CPUs. If it is full, the push sets the slot's bit in the spill map, which has a bit for
 * each slot of the hub and so is never full; above it are two levels of summary bits.
 *
 * A slot may wait in several places at once. The owner then looks at it several times, which does
 * no harm, because what to do is decided by the timer's pair.
 */
#ifndef TIMERHUB_INBOX_H
#define TIMERHUB_INBOX_H

#include "base/atomic.h"
#include "base/counter_board.h"
#include "base/memory.h"
#include "base/test_point.h"

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

#define INBOX_LEVELS 3 /* so the top level of the map has at most 256 words */
#ifndef INBOX_WORD
#define INBOX_WORD 64u /* how many bits of a word of the map are in use */
#endif

struct inbox {
	struct inbox_lane *lanes;
	/* Level 0 of the spill map has a bit for each slot, the others one for each word below. */
	atomic_u64 *map[INBOX_LEVELS];
	uint32_t lane_mask; /* number of lanes - 1 */
	uint32_t top_words; /* number of words of the top level */
	struct memory memory;
	/* The owner's walk over the map: on each level the bits still to do, and of which word. */
	_Alignas(CACHE_LINE_BYTES) uint64_t bits[INBOX_LEVELS];
	uint32_t word[INBOX_LEVELS];
};

/*
 * Opens an inbox for so many slots. `notes` has BOARD_LANES_MAX elements, or is NULL if the hub is
 * not observable. Returns 0 or -ENOMEM.
 */
int inbox_open(struct inbox *inbox, uint32_t capacity, struct board_lane *notes);

/* Gives back the memory. */
void inbox_close(struct inbox *inbox);

/*
 * Pushes a slot. Any thread can call it, and so can a signal handler. Returns true if so many slots
 * wait that the owner should be woken; only one call in several hundred checks that.
 */
bool inbox_push(struct inbox *inbox, unsigned cpu, uint32_t slot);

/*
 * Pushes a slot that probably waits already. It goes into the map, where a second push of the same
 * slot takes no more room. Returns what inbox_push() returns.
 */
bool inbox_push_again(struct inbox *inbox, unsigned cpu, uint32_t slot);

/* Tells whether a bit of one level of the map is set. */
static inline bool map_has(const atomic_u64 *words, uint32_t index)
{
	uint64_t word = u64_load_seq_cst(&words[index / INBOX_WORD]);

	test_point(TEST_POINT_WAITS_READ_WORD);
	return (word >> index % INBOX_WORD & 1) != 0;
}

/*
 * Tells whether a slot waits in the map, so that it need not be pushed. The levels are asked from
 * the bottom up; inbox.c says why.
 */
static inline bool inbox_waits(const struct inbox *inbox, uint32_t slot)
{
	return map_has(inbox->map[0], slot) && map_has(inbox->map[1], slot / INBOX_WORD) &&
	       map_has(inbox->map[2], slot / (INBOX_WORD * INBOX_WORD));
}

/* ---- calls of the owner ---- */

/*
 * Begins a drain of everything that was pushed before this call. inbox_take() must then be called
 * until it returns 0, before the next drain begins.
 */
void inbox_begin(struct inbox *inbox);

/* Takes up to `max` slots, and returns how many. 0 means that the drain has ended. */
unsigned inbox_take(struct inbox *inbox, uint32_t *slots, unsigned max);

/* Tells whether nothing waits. */
bool inbox_empty(const struct inbox *inbox);

#endif
