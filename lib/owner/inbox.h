/* SPDX-License-Identifier: MIT */
/*
 * A push never waits and is never refused: into a lane, or as a bit in the spill map, which has one
 * for each slot and two levels of summary. A slot may wait in several places.
 */
#ifndef TIMERHUB_INBOX_H
#define TIMERHUB_INBOX_H

#include "base/atomic.h"
#include "base/counter_board.h"
#include "base/memory.h"
#include "base/test_point.h"

/* For the threads on some of the CPUs. */
struct inbox_lane {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 *cells;
	struct board_lane *notes; /* NULL: not observable */
	/* by producers */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 tail; /* where producers start */
	atomic_u64 spilled; /* slots that its producers have put into the map */
	/* by the owner */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 head; /* next to take */
	atomic_u64 drained;                         /* `spilled` at the last drain */
	uint64_t end;                               /* of the present drain */
};

#define INBOX_LEVELS 3 /* top level has at most 256 words */
#ifndef INBOX_WORD
#define INBOX_WORD 64u /* bits in use of a map's word */
#endif

struct inbox {
	struct inbox_lane *lanes;
	atomic_u64 *map[INBOX_LEVELS]; /* level 0: a bit for each slot; above: for each word */
	uint32_t lane_mask;
	uint32_t top_words;
	struct memory memory;
	/* owner's walk: by level, a word's index and the bits to do */
	_Alignas(CACHE_LINE_BYTES) uint64_t bits[INBOX_LEVELS];
	uint32_t word[INBOX_LEVELS];
};

/* 0 or -ENOMEM. `notes` has BOARD_LANES_MAX elements; NULL: not observable. */
int inbox_open(struct inbox *inbox, uint32_t capacity, struct board_lane *notes);
void inbox_close(struct inbox *inbox);

/* By any thread, signal-safe. True: the owner must drain soon, which few calls check. */
bool inbox_push(struct inbox *inbox, unsigned cpu, uint32_t slot);

/* For a slot that probably waits: into the map, where doubles coincide. */
bool inbox_push_again(struct inbox *inbox, unsigned cpu, uint32_t slot);

static inline bool map_has(const atomic_u64 *words, uint32_t index)
{
	uint64_t word = u64_load_seq_cst(&words[index / INBOX_WORD]);

	test_point(TEST_POINT_WAITS_READ_WORD);
	return (word >> index % INBOX_WORD & 1) != 0;
}

/* In the map, so it need not be pushed. Bottom up: see inbox.c. */
static inline bool inbox_waits(const struct inbox *inbox, uint32_t slot)
{
	return map_has(inbox->map[0], slot) && map_has(inbox->map[1], slot / INBOX_WORD) &&
	       map_has(inbox->map[2], slot / (INBOX_WORD * INBOX_WORD));
}

/*
 * By the owner, like all below: begin a drain of all that was pushed before; take until 0 before
 * the next.
 */
void inbox_begin(struct inbox *inbox);

/* 0: the drain has ended. */
unsigned inbox_take(struct inbox *inbox, uint32_t *slots, unsigned max);

bool inbox_empty(const struct inbox *inbox);

#endif
