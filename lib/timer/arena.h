/* SPDX-License-Identifier: MIT */
/* The slots of timers: lock-free, for any thread. */
#ifndef TIMERHUB_ARENA_H
#define TIMERHUB_ARENA_H

#include "base/counter_board.h"
#include "base/memory.h"
#include "timer/timer.h"

/* For the threads on some of the CPUs. */
struct arena_shard {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 top; /* [free] takes so far << 26 | first slot + 1 */
	atomic_u64 fresh;                          /* never used: end << 32 | next */
	uint32_t begin, end;                       /* its slots */
	atomic_u64 laps;                           /* of the takes, which have 38 bits */
	atomic_u64 filling;        /* shard whose fresh slots its CPUs take, as home ^ i */
	atomic_u64 surplus;        /* where they last found a stack to take from, as home ^ i */
	struct board_shard *notes; /* NULL: not observable */
};

struct arena {
	struct timers timers;
	struct timer_filing *filings; /* by slot; the owner's */
	struct arena_shard *shards;
	uint32_t shard_mask;
	uint64_t shards_per_slot; /* in units of 2^-64, rounded up */
	uint32_t capacity;
	struct memory memory;
};

/*
 * 0 or -ENOMEM. `capacity` is 1 to TIMER_SLOTS_MAX; `notes` has BOARD_SHARDS_MAX elements, NULL if
 * not observable.
 */
int arena_open(struct arena *arena, uint32_t capacity, struct board_shard *notes);
void arena_close(struct arena *arena);

/* From this CPU's stack if possible. SLOT_NONE only if at some point no slot was free. */
uint32_t arena_take(struct arena *arena, unsigned cpu);

/*
 * `count` as a list, or none. Returns the first, for arena_next(); SLOT_NONE if fewer are free,
 * after putting back the `*ret_taken`.
 */
uint32_t arena_take_list(struct arena *arena, unsigned cpu, unsigned count, unsigned *ret_taken);

/* In a list, before timer_arm() overwrites the link. */
uint32_t arena_next(const struct arena *arena, uint32_t slot);

/* A slot that nobody else uses: here if this CPU holds few, else home. */
void arena_put(struct arena *arena, unsigned cpu, uint32_t slot);

/* At least one, in one step or one for each CPU. */
void arena_put_many(struct arena *arena, unsigned cpu, const uint32_t *slots, unsigned count);

/* The first at or after `slot` that was ever used, perhaps free again, or SLOT_NONE. */
uint32_t arena_next_used(const struct arena *arena, uint32_t slot);

struct arena_counts {
	uint64_t taken; /* so far */
	uint64_t in_use;
	uint64_t in_use_max;
};

/* Over all shards; exact while nobody takes or puts. */
struct arena_counts arena_count(const struct arena *arena);

#endif
