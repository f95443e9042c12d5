/* SPDX-License-Identifier: MIT */
/*
 * A hierarchical timing wheel (G. Varghese and A. Lauck, "Hashed and hierarchical timing wheels",
 * 1987), in which a timer is inserted, moved and removed in constant time, however many there are.
 *
 * It has four levels of 4,096 buckets each. A bucket of the finest level is 65.5 µs wide, and one
 * of the next level is as wide as all of the level below. The wheel does not tick: bitmaps say
 * which bucket is the next that holds anything. It uses no atomics and reads no clock.
 *
 * A bucket is a list of chunks of 20 entries, of which only the first may have fewer. Besides the
 * chunks of the buckets, wheel_chunks_for() counts one for the bucket that is being emptied, and
 * chunk 0, which is never used.
 */
#ifndef TIMERHUB_WHEEL_H
#define TIMERHUB_WHEEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/ahead.h"
#include "base/bits.h"
#include "base/cpu.h"
#include "schedule/entry.h"

#define WHEEL_FINEST_SHIFT 16 /* a bucket of the finest level is 2^16 ns wide */
#define WHEEL_DIGIT_BITS 12   /* a level has 2^12 buckets; 16 + 4 x 12 are all 64 bits of a time */
#define WHEEL_LEVELS 4
#define WHEEL_DIGITS (1u << WHEEL_DIGIT_BITS)
#define WHEEL_BITMAP_WORDS (WHEEL_DIGITS / 64)
#define WHEEL_CHUNK_ENTRIES 20
#define WHEEL_ENTRY_BITS 5
#define CHUNK_NONE 0 /* chunk 0 is never used, so that zeroed memory means "none" */
_Static_assert(WHEEL_FINEST_SHIFT + WHEEL_LEVELS * WHEEL_DIGIT_BITS == 64,
               "the levels have a digit for each bit of a time");
_Static_assert(WHEEL_BITMAP_WORDS <= 64, "wheel_level.summary has a bit for each word");
_Static_assert(WHEEL_LEVELS *WHEEL_DIGITS <= UINT16_MAX + 1u,
               "wheel_chunk.bucket has a number for each bucket");
_Static_assert(WHEEL_CHUNK_ENTRIES <= 1u << WHEEL_ENTRY_BITS,
               "timer_filing.where has a number for each entry of a chunk");

/*
 * Holds up to 20 entries of one bucket, in four cache lines. A bucket is a linked list of chunks.
 */
struct wheel_chunk {
	/* The next chunk of the bucket, or of the list of free chunks, or CHUNK_NONE. */
	_Alignas(CACHE_LINE_BYTES) uint32_t next;
	uint16_t bucket; /* level << 12 | index of the bucket in its level */
	uint16_t count; /* how many entries it has; all chunks of a bucket but the first are full */
	struct timer_due entries[WHEEL_CHUNK_ENTRIES];
	uint32_t behind; /* how many chunks follow this one in its bucket */
};
_Static_assert(sizeof(struct wheel_chunk) == 4 * (size_t)CACHE_LINE_BYTES,
               "a chunk fills its cache lines");

struct wheel_bucket {
	uint64_t bound_ns;   /* no entry of the bucket is earlier */
	uint32_t first;      /* its first chunk; CHUNK_NONE if the bucket is empty */
	uint32_t bound_slot; /* the slot whose time bound_ns is; SLOT_NONE if it has gone */
};

struct wheel_level {
	uint64_t summary;                    /* bit w says that bitmap[w] is not 0 */
	uint64_t bitmap[WHEEL_BITMAP_WORDS]; /* bit d says that bucket d is not empty */
	struct wheel_bucket buckets[WHEEL_DIGITS];
};

/*
 * A sweep: a walk over all entries of one bucket, which may pause while entries are added and
 * removed. The head of wheel.c says why no entry is missed.
 */
struct wheel_sweep {
	struct wheel_bucket *bucket; /* the bucket that is swept; NULL if there is no sweep */
	/*
	 * rest.first is the chunk that the sweep has reached. rest.bound_ns is the earliest time of
	 * the timers that were inserted since the sweep began.
	 */
	struct wheel_bucket rest;
	unsigned entry; /* the chunk's entries from this one on have been visited */
};

struct wheel {
	struct timer_filing *filings; /* by slot; .where is WHERE_WHEEL | chunk << 5 | entry */
	uint64_t base_ns; /* every slot is due after the finest bucket that has this time */
	struct wheel_level *levels;
	struct wheel_chunk *chunks;
	uint32_t chunks_max;  /* how many chunks there are */
	uint32_t chunks_used; /* the chunks from this one on have never been used */
	uint32_t free_chunk;  /* the first of the list of free chunks, or CHUNK_NONE */
	struct wheel_sweep sweep;
	/*
	 * For each level, the time at which the last swept bucket ends, in ns; 0: none was swept.
	 */
	uint64_t swept_ns[WHEEL_LEVELS];
};

/*
 * Returns how many chunks are enough for this many slots. Each bucket may have one chunk that is
 * not full.
 */
static inline uint32_t wheel_chunks_for(uint32_t slots)
{
	uint64_t buckets = u64_min(slots, WHEEL_LEVELS * WHEEL_DIGITS);

	return (uint32_t)(2 + buckets + slots / WHEEL_CHUNK_ENTRIES);
}
_Static_assert(2 + WHEEL_LEVELS * WHEEL_DIGITS + SCHEDULE_SLOTS_MAX / WHEEL_CHUNK_ENTRIES <=
                       1u << (30 - WHEEL_ENTRY_BITS),
               "timer_filing.where has a number for each chunk");

/*
 * Sets up an empty wheel. `levels` and the `chunks_max` chunks must be zeroed. They are not touched
 * here, so that the kernel commits their pages only when they are used.
 */
void wheel_init(struct wheel *wheel, struct wheel_level *levels, struct wheel_chunk *chunks,
                uint32_t chunks_max, struct timer_filing *filings);

/*
 * Returns true if the wheel can hold an entry for `at_ns`. The wheel holds only times after its
 * present bucket, which is 65.5 us wide.
 */
static inline bool wheel_covers(const struct wheel *wheel, uint64_t at_ns)
{
	return at_ns >> WHEEL_FINEST_SHIFT > wheel->base_ns >> WHEEL_FINEST_SHIFT;
}

/*
 * Adds a timer that is not scheduled yet, at a time for which wheel_covers() is true. Takes O(1).
 */
void wheel_insert(struct wheel *wheel, struct timer_due due);

/*
 * Prefetches the memory that is touched when the timer in `slot`, which must be in the wheel, is
 * moved to another time.
 */
CPU_FETCHES void wheel_fetch(const struct wheel *wheel, uint32_t slot)
{
	uint32_t where = wheel->filings[slot].where & ~WHERE_MASK;
	const struct wheel_chunk *chunk = &wheel->chunks[where >> WHEEL_ENTRY_BITS];

	__builtin_prefetch(chunk, 1);
	__builtin_prefetch(&chunk->entries[where & ((1u << WHEEL_ENTRY_BITS) - 1)], 1);
}

/* Prefetches a whole chunk, a part of a bucket, because all of its entries will be read. */
CPU_FETCHES void wheel_fetch_chunk(const struct wheel *wheel, uint32_t chunk)
{
	const char *lines = (const char *)&wheel->chunks[chunk];

	for (unsigned i = 0; i < sizeof(*wheel->chunks); i += CACHE_LINE_BYTES)
		__builtin_prefetch(lines + i);
}

/* Removes the timer in `slot`, which must be in the wheel. Takes O(1). */
void wheel_remove(struct wheel *wheel, uint32_t slot);

/* Returns the time at which the timer in `slot` is due. The timer must be in the wheel. */
uint64_t wheel_at_ns(const struct wheel *wheel, uint32_t slot);

/*
 * Gives the entry of a timer a new time, if that lies in the same bucket as the old one. Otherwise
 * it returns false and changes nothing.
 */
bool wheel_move_within(struct wheel *wheel, uint32_t slot, uint64_t at_ns);

/*
 * Returns the time of the earliest timer, or UINT64_MAX if the wheel is empty. If a bucket with
 * many timers has lost its earliest one, the result can be too early, but never too late.
 */
uint64_t wheel_bound_ns(const struct wheel *wheel);

/*
 * What wheel_first() returns about the earliest timer of the wheel, and about the bucket that it is
 * in.
 */
struct wheel_first {
	uint64_t bound_ns; /* what wheel_bound_ns() returns */
	uint32_t slot;     /* the earliest slot; SLOT_NONE if only a bound of its time is known */
	bool is_alone;     /* it is the only slot of its bucket */
	bool is_of_many;   /* its bucket is long, so that sorting it takes a while */
};

struct wheel_first wheel_first(const struct wheel *wheel);

/*
 * Returns the slot of the earliest timer, or SLOT_NONE if that is not known, and prefetches the
 * memory that its removal will touch.
 */
uint32_t wheel_peek(const struct wheel *wheel);

/*
 * Adds to `counts[i]` how many timers become due in range `i` (see ahead_range()). A bucket of more
 * than 20 timers is estimated by at most 20 of them.
 */
void wheel_ahead(const struct wheel *wheel, uint64_t now_ns, uint64_t *counts);

/*
 * Stores in `slots` up to `max` slots, in any order, that may be among the first in the wheel, and
 * returns how many. Their timers may have been postponed or cancelled, so the caller must insert
 * each slot anew or remove it. Returns 0 if nothing before `before_ns` is left to check.
 */
unsigned wheel_doubt(struct wheel *wheel, uint64_t before_ns, uint32_t *slots, unsigned max);

/*
 * Advances the wheel to `base_ns`, which is at most wheel_bound_ns(). Empties the bucket for that
 * time, and returns the first chunk of its entries, or CHUNK_NONE. The caller must insert these
 * entries again before any other call.
 */
uint32_t wheel_enter(struct wheel *wheel, uint64_t base_ns);

/*
 * Returns the entries of a chunk, which is a part of a bucket, and in *ret_count how many there
 * are.
 */
static inline const struct timer_due *wheel_chunk_dues(const struct wheel *wheel, uint32_t chunk,
                                                       unsigned *ret_count)
{
	*ret_count = wheel->chunks[chunk].count;
	return wheel->chunks[chunk].entries;
}

/* Returns the chunk that follows this one in its bucket, or CHUNK_NONE. */
static inline uint32_t wheel_next_chunk(const struct wheel *wheel, uint32_t chunk)
{
	return wheel->chunks[chunk].next;
}

/*
 * Frees a chunk that wheel_enter() has taken out of a bucket, when the caller has inserted its
 * entries elsewhere. Returns the bucket's next chunk, or CHUNK_NONE.
 */
uint32_t wheel_leave_chunk(struct wheel *wheel, uint32_t chunk);

#endif
