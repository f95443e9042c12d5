/* SPDX-License-Identifier: MIT */
/*
 * The slots of a hub: memory for timers_max timers, which is reserved when the hub is opened. A
 * thread that arms a timer takes a slot, and the slot is put back when the timer has ended. Any
 * thread can do both, also in a signal handler, because neither waits for another thread.
 *
 * The slots are divided into shards, of which each CPU prefers one, so that CPUs stay apart.
 */
#ifndef TIMERHUB_ARENA_H
#define TIMERHUB_ARENA_H

#include "base/counter_board.h"
#include "base/memory.h"
#include "timer/timer.h"

/* The slots that the threads on some of the CPUs prefer: a stack of free ones, and fresh ones. */
struct arena_shard {
	/*
	 * The free stack's top: how many slots were taken from it, << 26 | the first slot + 1.
	 * [free] Whoever takes a slot may use it as the last user has left it.
	 */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 top;
	atomic_u64 fresh;    /* the slots that were never used: their end << 32 | the next one */
	uint32_t begin, end; /* the shard's own slots, from `begin` to before `end` */
	atomic_u64 laps;     /* how often the count of takes, which has 38 bits, has wrapped */
	atomic_u64 filling;  /* whose fresh slots its CPUs take now, as shard ^ this shard */
	atomic_u64 surplus;  /* where they last found free slots to take, as shard ^ this shard */
	struct board_shard *notes; /* its numbers on the counter board; NULL if not observable */
};

struct arena {
	struct timers timers;
	struct timer_filing
		*filings; /* by slot: where the owner has scheduled it and put its event */
	struct arena_shard *shards;
	uint32_t shard_mask;      /* the number of shards, a power of two, minus 1 */
	uint64_t shards_per_slot; /* 1 / the slots of a shard, in units of 2^-64, rounded up */
	uint32_t capacity;
	struct memory memory;
};

/*
 * Opens an arena with `capacity` slots, which is 1 to TIMER_SLOTS_MAX. `notes` is where it shows
 * its numbers, BOARD_SHARDS_MAX elements of a counter board, or NULL. Returns 0 or -ENOMEM.
 */
int arena_open(struct arena *arena, uint32_t capacity, struct board_shard *notes);
void arena_close(struct arena *arena);

/*
 * Takes a slot, from the shard that this CPU prefers if possible. Returns SLOT_NONE only if there
 * was a moment during the call at which no slot was free.
 */
uint32_t arena_take(struct arena *arena, unsigned cpu);

/*
 * Takes `count` slots, linked into a list, or none. Returns the list's first slot, after which
 * arena_next() finds the others. If fewer are free, it returns SLOT_NONE, after it has taken and
 * put back *ret_taken slots.
 */
uint32_t arena_take_list(struct arena *arena, unsigned cpu, unsigned count, unsigned *ret_taken);

/*
 * Returns the next slot of a list that arena_take_list() has returned. It must be asked before
 * timer_arm() arms a timer in `slot`, because that overwrites the link.
 */
uint32_t arena_next(const struct arena *arena, uint32_t slot);

/*
 * Puts a slot back that nobody uses any more. It stays with this CPU's shard if that has few free
 * slots, and else goes home to the shard to which it belongs.
 */
void arena_put(struct arena *arena, unsigned cpu, uint32_t slot);

/*
 * Puts `count` slots back, at least one: all of them to this CPU's shard in one step, or each to
 * the shard to which it belongs, in one step a shard.
 */
void arena_put_many(struct arena *arena, unsigned cpu, const uint32_t *slots, unsigned count);

/*
 * Returns the first slot at or after `slot` that was ever used, and may be free again. Returns
 * SLOT_NONE if there is none.
 */
uint32_t arena_next_used(const struct arena *arena, uint32_t slot);

struct arena_counts {
	uint64_t taken;      /* how often a slot was taken so far */
	uint64_t in_use;     /* how many slots are in use now */
	uint64_t in_use_max; /* how many slots were ever used */
};

/* Counts the slots of all shards, which is exact while nobody takes a slot or puts one back. */
struct arena_counts arena_count(const struct arena *arena);

#endif
