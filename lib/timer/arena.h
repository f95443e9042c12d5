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

/* A part of the slots, which some CPUs prefer: some free on a stack, some never used. */
struct arena_shard {
	/* The low 26 bits: top slot of the stack + 1, or 0. Above: the count of takes. */
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
 * Opens an arena. `notes`, for timerhub-top, has BOARD_SHARDS_MAX elements or is NULL. Returns 0 or
 * -ENOMEM.
 */
int arena_open(struct arena *arena, uint32_t capacity, struct board_shard *notes);
void arena_close(struct arena *arena);

/* Takes a free slot. Returns SLOT_NONE only if none was free at one moment of the call. */
uint32_t arena_take(struct arena *arena, unsigned cpu);

/*
 * Takes `count` slots as a list for arena_next(). If there are too few, takes none, and returns
 * SLOT_NONE.
 */
uint32_t arena_take_list(struct arena *arena, unsigned cpu, unsigned count, unsigned *ret_taken);

/* Returns the next slot of a list. Call it before `slot` is armed, which overwrites the link. */
uint32_t arena_next(const struct arena *arena, uint32_t slot);

/* Puts back a slot that nobody uses any more, to this CPU's shard or the slot's own. */
void arena_put(struct arena *arena, unsigned cpu, uint32_t slot);

/* Puts back `count` slots, which must not be 0. */
void arena_put_many(struct arena *arena, unsigned cpu, const uint32_t *slots, unsigned count);

/* Returns the first slot from `slot` on that ever had a timer, or SLOT_NONE. */
uint32_t arena_next_used(const struct arena *arena, uint32_t slot);

struct arena_counts {
	uint64_t taken;      /* how often a slot was taken so far */
	uint64_t in_use;     /* how many slots are in use now */
	uint64_t in_use_max; /* how many slots were ever used */
};

/* Counts the slots of all shards. Inexact while threads take slots or put them back. */
struct arena_counts arena_count(const struct arena *arena);

#endif
