/* SPDX-License-Identifier: MIT */
/*
 * Allocates the slots of timers. Open reserves the arrays, and the kernel commits a page when it is
 * touched. Each stack of free slots serves some of the CPUs. Lock-free; any thread may call.
 */
#ifndef TIMERHUB_ARENA_H
#define TIMERHUB_ARENA_H

#include "base/counter_board.h"
#include "base/memory.h"
#include "timer/timer.h"

/* A stack of free slots for the threads on some of the CPUs, and slots that were never used. */
struct arena_shard {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 top; /* [free] takes so far << 26 | first slot + 1 */
	atomic_u64 fresh;          /* slots of the shard never used: end << 32 | next */
	uint32_t begin;            /* first slot of this shard; fixed at open */
	struct board_shard *notes; /* notes on the board; NULL: the hub is not observable */
};

struct arena {
	struct timers timers;         /* a pair and a record for each slot */
	struct timer_filing *filings; /* a filing for each slot; only the owner uses it */
	struct arena_shard *shards;   /* shard_mask + 1 shards */
	uint32_t shard_mask;          /* number of shards, a power of two, minus one */
	uint32_t shard_slots;         /* slots of each shard; the last shard may have fewer */
	uint32_t capacity;            /* number of slots in the arena */
	struct memory memory;         /* the mapping that holds all arrays */
};

/* Returns 0 or -ENOMEM. `capacity`: 1 to TIMER_SLOTS_MAX. `notes`: BOARD_SHARDS_MAX, or NULL. */
int arena_open(struct arena *arena, uint32_t capacity, struct board_shard *notes);
void arena_close(struct arena *arena);

/*
 * Take a free slot, from this CPU's stack if possible. Returns SLOT_NONE only if at some point
 * during the call no slot was free.
 */
uint32_t arena_take(struct arena *arena, unsigned cpu);

/*
 * Take `count` slots as a list, or none. Returns the first slot; arena_next() returns the others.
 * If fewer slots are free, returns SLOT_NONE after putting back the `*ret_taken` slots it took.
 */
uint32_t arena_take_list(struct arena *arena, unsigned cpu, unsigned count, unsigned *ret_taken);

/* Returns the slot after `slot` in a list. Call arena_next() before an arm overwrites the link. */
uint32_t arena_next(const struct arena *arena, uint32_t slot);

/* Put back a slot that no other thread uses. */
void arena_put(struct arena *arena, unsigned cpu, uint32_t slot);

/*
 * Put back `count` slots, at least one, on this CPU's stack in one step. If `share` is set and the
 * CPU's stack holds many slots, put each slot back by arena_put(), so that other CPUs find slots.
 */
void arena_put_many(struct arena *arena, unsigned cpu, const uint32_t *slots, unsigned count,
                    bool share);

/* Returns the first slot at or after `slot` that was ever used, or SLOT_NONE. */
uint32_t arena_next_used(const struct arena *arena, uint32_t slot);

struct arena_counts {
	uint64_t taken;      /* number of slots taken so far */
	uint64_t in_use;     /* number of slots in use now */
	uint64_t in_use_max; /* largest number of slots in use at once */
};

/* Returns the sums over all shards. The counts are exact while no thread takes or puts. */
struct arena_counts arena_count(const struct arena *arena);

#endif
