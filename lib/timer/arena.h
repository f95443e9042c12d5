/* SPDX-License-Identifier: MIT */
/* Allocates the slots of timers. All functions are lock-free, and any thread may call them. */
#ifndef TIMERHUB_ARENA_H
#define TIMERHUB_ARENA_H

#include "base/counter_board.h"
#include "base/memory.h"
#include "timer/timer.h"

/* Free slots and slots that were never used, for the threads on some of the CPUs. */
struct arena_shard {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 top; /* [free] takes so far << 26 | first slot + 1 */
	atomic_u64 fresh;    /* range of slots that were never used: end << 32 | next */
	uint32_t begin, end; /* slots of this shard; fixed at open */
	atomic_u64 filling;  /* other shard whose fresh slots this one's CPUs take, as home ^ i */
	struct board_shard *notes; /* notes on the board, or NULL if the hub is not observable */
};

struct arena {
	struct timers timers;         /* a pair and a record for each slot */
	struct timer_filing *filings; /* schedule position of each slot; only for the owner */
	struct arena_shard *shards;   /* shard_mask + 1 shards */
	uint32_t shard_mask;          /* number of shards (a power of two) minus 1 */
	uint64_t shards_per_slot;     /* shards a slot, in units of 2^-64, rounded up */
	uint32_t capacity;            /* number of slots in the arena */
	struct memory memory;         /* the mapping that holds all arrays */
};

/*
 * Returns 0 or -ENOMEM. `capacity` is from 1 to TIMER_SLOTS_MAX. `notes` is an array with
 * BOARD_SHARDS_MAX elements, or NULL if the hub is not observable.
 */
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

/* Returns the slot after `slot` in a list. Call before timer_arm() overwrites the slot's link. */
uint32_t arena_next(const struct arena *arena, uint32_t slot);

/* Put back a slot that no other thread uses: here if this CPU holds few, else at its own CPU. */
void arena_put(struct arena *arena, unsigned cpu, uint32_t slot);

/* The same with `count` slots, at least one: in one step, or in one for each CPU. */
void arena_put_many(struct arena *arena, unsigned cpu, const uint32_t *slots, unsigned count);

/* Returns the first slot at or after `slot` that was ever used, or SLOT_NONE. */
uint32_t arena_next_used(const struct arena *arena, uint32_t slot);

struct arena_counts {
	uint64_t taken;      /* number of slots taken so far */
	uint64_t in_use;     /* number of slots in use now */
	uint64_t in_use_max; /* largest number of slots in use at once */
};

/* Returns the sums over all shards. The counts are exact while no thread takes or puts a slot. */
struct arena_counts arena_count(const struct arena *arena);

#endif
