/* SPDX-License-Identifier: MIT */
/*
 * Where timers live: one slot each, in arrays reserved at open and committed as touched, and the
 * free slots, in stacks split by CPU. Lock-free: any thread takes and puts.
 */
#ifndef TIMERHUB_ARENA_H
#define TIMERHUB_ARENA_H

#include "base/board.h"
#include "base/memory.h"
#include "timer/timer.h"

/* Free slots that were put back by threads on the same CPUs, and slots never used yet. */
struct arena_shard {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 top; /* [free] takes so far << 26 | first slot + 1 */
	atomic_u64 fresh;          /* slots of its own that were never used: end << 32 | next */
	uint32_t begin;            /* its slots begin here; fixed at open */
	struct board_shard *notes; /* on the board; NULL: not observable */
};

struct arena {
	struct timers timers;         /* one of each for a slot */
	struct timer_filing *filings; /* one per slot: the owner's */
	struct arena_shard *shards;   /* shard_mask + 1 of them */
	uint32_t shard_mask;          /* a power of two less one */
	uint32_t shard_slots;         /* each shard's own, the last one's may be fewer */
	uint32_t capacity;            /* slots in all */
	struct memory memory;         /* holds all of the above */
};

/* 0, or -ENOMEM. `capacity` is from 1 to TIMER_SLOTS_MAX. */
int arena_open(struct arena *arena, uint32_t capacity);
void arena_close(struct arena *arena);

/* Leave notes, BOARD_SHARDS_MAX of them, from now on. Before the first slot is taken. */
void arena_observe(struct arena *arena, struct board_shard *notes);

/* Take a free slot, near this CPU's; SLOT_NONE only if at one instant none was free. */
uint32_t arena_take(struct arena *arena, unsigned cpu);

/*
 * Take so many slots, or none: a list. Returns the first, the others by arena_next(); SLOT_NONE if
 * there were not so many, and how many were taken, and put back.
 */
uint32_t arena_take_list(struct arena *arena, unsigned cpu, unsigned count, unsigned *ret_taken);

/* The slot after this one of a list. Before the slot is armed, which writes over its link. */
uint32_t arena_next(const struct arena *arena, uint32_t slot);

/* Put back a slot that no other thread may use any more. */
void arena_put(struct arena *arena, unsigned cpu, uint32_t slot);

/*
 * The same of many in one step, all to this CPU's stack, unless `share` says that others should
 * find some too and that stack is deep. `count` at least 1.
 */
void arena_put_many(struct arena *arena, unsigned cpu, const uint32_t *slots, unsigned count,
                    bool share);

/*
 * Walk the slots that were ever used: the first of them at or after `slot`, or SLOT_NONE.
 */
uint32_t arena_next_used(const struct arena *arena, uint32_t slot);

struct arena_counts {
	uint64_t taken;      /* slots taken so far */
	uint64_t in_use;     /* slots in use now */
	uint64_t in_use_max; /* most slots in use at once */
};

/* Read the counts, which the free stacks keep anyway. Exact while no thread takes or puts. */
struct arena_counts arena_count(const struct arena *arena);

#endif
