/* SPDX-License-Identifier: MIT */
/*
 * The memory for the timers of a hub. Room for timers_max timers, the slots, is reserved when the
 * hub is opened. A thread that arms a timer takes a slot, and puts it back when the timer has
 * ended. Any thread can do both, also in a signal handler, because neither waits for another
 * thread.
 *
 * The slots are divided into shards. Each CPU prefers one of them, so that CPUs rarely touch the
 * same memory.
 */
#ifndef TIMERHUB_ARENA_H
#define TIMERHUB_ARENA_H

#include "base/memory.h"
#include "board/counter_board.h"
#include "timer/timer.h"

/*
 * A part of a hub's slots, which the threads on some of the CPUs prefer. It has a stack of the
 * slots that are free again, and a range of the slots that were never used.
 */
struct arena_shard {
	/*
	 * The stack of free slots. Whoever takes a slot also sees what its last user has stored.
	 * - low 26 bits: the top slot + 1, or 0 if the stack is empty
	 * - above: how many slots were taken so far; wraps
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
 * Opens an arena with `capacity` slots, from 1 to TIMER_SLOTS_MAX. `notes` has BOARD_SHARDS_MAX
 * elements, in which the arena counts its slots for timerhub-top, or is NULL. Returns 0 or -ENOMEM.
 */
int arena_open(struct arena *arena, uint32_t capacity, struct board_shard *notes);
void arena_close(struct arena *arena);

/*
 * Takes a free slot, if possible from the shard that this CPU prefers. Returns SLOT_NONE only if,
 * at one moment of the call, no slot was free.
 */
uint32_t arena_take(struct arena *arena, unsigned cpu);

/*
 * Takes `count` slots, links them into a list for arena_next(), and returns the first. If fewer are
 * free, puts them back and returns SLOT_NONE. *ret_taken says how many it took.
 */
uint32_t arena_take_list(struct arena *arena, unsigned cpu, unsigned count, unsigned *ret_taken);

/*
 * Returns the slot that follows `slot` in a list from arena_take_list(). Call it before you arm a
 * timer in `slot`, because that overwrites the link.
 */
uint32_t arena_next(const struct arena *arena, uint32_t slot);

/*
 * Puts back a slot that nobody uses any more. The slot goes to the shard that this CPU prefers. If
 * that shard has many free slots, the slot goes to the shard to which it belongs.
 */
void arena_put(struct arena *arena, unsigned cpu, uint32_t slot);

/*
 * Puts `count` slots, at least one, onto the stack of this CPU's shard in one step. If that stack
 * is long already, each slot goes back to its own shard.
 */
void arena_put_many(struct arena *arena, unsigned cpu, const uint32_t *slots, unsigned count);

/*
 * Returns the first slot from `slot` on that ever had a timer, or SLOT_NONE. Whoever visits all
 * timers calls it to skip memory that was never touched.
 */
uint32_t arena_next_used(const struct arena *arena, uint32_t slot);

struct arena_counts {
	uint64_t taken;      /* how often a slot was taken so far */
	uint64_t in_use;     /* how many slots are in use now */
	uint64_t in_use_max; /* how many slots were ever used */
};

/*
 * Counts the slots of all shards. The result is exact only if no thread takes a slot or puts one
 * back at the same time.
 */
struct arena_counts arena_count(const struct arena *arena);

#endif
