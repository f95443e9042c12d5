/* SPDX-License-Identifier: MIT */
/*
 * The timers due later: a hierarchical timing wheel (G. Varghese and A. Lauck, "Hashed and
 * hierarchical timing wheels", 1987) of four levels with 4,096 buckets each, the finest 65.5 µs
 * wide. It never ticks: bitmaps say where the next occupied bucket is. Single-threaded and pure:
 * no atomics, no clock.
 */
#ifndef TIMERHUB_WHEEL_H
#define TIMERHUB_WHEEL_H

#include <stdbool.h>

#include "base/bits.h"
#include "base/cpu.h"
#include "schedule/filing.h"

#define WHEEL_FINEST_SHIFT 16 /* a bucket of level 0 is 2^16 ns wide */
#define WHEEL_DIGIT_BITS 12   /* a level has 2^12 buckets: 16 + 4 x 12 = 64, every instant fits */
#define WHEEL_LEVELS 4
#define WHEEL_DIGITS (1u << WHEEL_DIGIT_BITS)
#define WHEEL_BITMAP_WORDS (WHEEL_DIGITS / 64)
#define WHEEL_CHUNK_ENTRIES 20
#define WHEEL_ENTRY_BITS 5
#define CHUNK_NONE 0 /* chunk 0 is never used, so that zeroed memory means "none" */

/* Some of a bucket's timers, side by side: four cache lines. */
struct wheel_chunk {
	_Alignas(CACHE_LINE_BYTES)
		uint32_t next; /* the bucket's next chunk, or the next free one; or CHUNK_NONE */
	uint16_t bucket;       /* level << 12 | digit */
	uint16_t count;        /* entries in use; only a bucket's first chunk is not full */
	struct timer_due entries[WHEEL_CHUNK_ENTRIES];
};

struct wheel_bucket {
	uint64_t bound_ns;   /* no slot in here is filed before this */
	uint32_t first;      /* its first chunk */
	uint32_t bound_slot; /* filed at the bound; SLOT_NONE: it has left, the bound may be low */
};

struct wheel_level {
	uint64_t summary;                    /* bit w: bitmap[w] is not 0 */
	uint64_t bitmap[WHEEL_BITMAP_WORDS]; /* bit d: bucket d is not empty */
	struct wheel_bucket buckets[WHEEL_DIGITS];
};

/*
 * A walk over a bucket's slots, from the end of its first chunk to the last chunk. Holes are filled
 * from that end, with slots that the walk has passed; so it misses none.
 */
struct wheel_sweep {
	struct wheel_bucket *bucket; /* which; NULL: none is in progress */
	struct wheel_bucket rest;    /* .first: where to go on; bound of what was filed meanwhile */
	unsigned entry;              /* the entries from here on in that chunk have been passed */
};

struct wheel {
	struct timer_filing
		*filings;           /* .where of a slot in here: WHERE_WHEEL | chunk << 5 | entry */
	uint64_t base_ns;           /* everything in here is later than this one's finest bucket */
	struct wheel_level *levels; /* WHEEL_LEVELS of them */
	struct wheel_chunk *chunks; /* wheel_chunks_for(slots) of them */
	uint32_t chunks_used;       /* chunks from here on were never used */
	uint32_t free_chunk;        /* the first free chunk below that, or CHUNK_NONE */
	struct wheel_sweep sweep;
	uint64_t swept_ns[WHEEL_LEVELS]; /* buckets of a level up to here have been swept */
};

/*
 * How many chunks a wheel for so many slots can need: each bucket may have one that is not full,
 * one is being emptied, and one is never used.
 */
static inline uint32_t wheel_chunks_for(uint32_t slots)
{
	uint64_t buckets = u64_min(slots, WHEEL_LEVELS * WHEEL_DIGITS);

	return (uint32_t)(2 + buckets + slots / WHEEL_CHUNK_ENTRIES);
}

/* `levels` and `chunks`: zeroed; untouched ones stay untouched. */
void wheel_init(struct wheel *wheel, struct wheel_level *levels, struct wheel_chunk *chunks,
                struct timer_filing *filings);

/* Is this instant beyond the base's finest bucket, so that it belongs in the wheel? */
static inline bool wheel_covers(const struct wheel *wheel, uint64_t at_ns)
{
	return at_ns >> WHEEL_FINEST_SHIFT > wheel->base_ns >> WHEEL_FINEST_SHIFT;
}

/* The slot must be filed nowhere, and the instant covered. O(1). */
void wheel_insert(struct wheel *wheel, struct timer_due due);

/* The slot must be in the wheel: have the memory fetched that moving it will touch. */
CPU_FETCHES void wheel_fetch(const struct wheel *wheel, uint32_t slot)
{
	uint32_t where = wheel->filings[slot].where & ~WHERE_MASK;
	const struct wheel_chunk *chunk = &wheel->chunks[where >> WHEEL_ENTRY_BITS];

	__builtin_prefetch(chunk, 1);
	__builtin_prefetch(&chunk->entries[where & ((1u << WHEEL_ENTRY_BITS) - 1)], 1);
}

/* Have a chunk fetched, to be read soon. */
CPU_FETCHES void wheel_fetch_chunk(const struct wheel *wheel, uint32_t chunk)
{
	const char *lines = (const char *)&wheel->chunks[chunk];

	for (unsigned i = 0; i < sizeof(*wheel->chunks); i += CACHE_LINE_BYTES)
		__builtin_prefetch(lines + i);
}

/* The slot must be in the wheel. O(1). */
void wheel_remove(struct wheel *wheel, uint32_t slot);
uint64_t wheel_at_ns(const struct wheel *wheel, uint32_t slot);

/*
 * Move a slot of the wheel to another instant. True if that was done by writing it down, because
 * both lie in the same bucket; false, and nothing done, if not.
 */
bool wheel_move_within(struct wheel *wheel, uint32_t slot, uint64_t at_ns);

/* No slot in the wheel is filed before this; exact but where a long bucket lost its first. */
uint64_t wheel_bound_ns(const struct wheel *wheel);

/* The first of all, and whether its bucket is worth entering for it. */
struct wheel_first {
	uint64_t bound_ns; /* wheel_bound_ns() */
	uint32_t slot;     /* filed at the bound; SLOT_NONE: it has left a bucket of many */
	bool is_alone;     /* no other slot is in its bucket */
	bool is_of_many;   /* entering its bucket may take as long as thousands of takes */
};

struct wheel_first wheel_first(const struct wheel *wheel);

/* Have fetched what taking the first of all will touch. Returns its slot; SLOT_NONE: not known. */
uint32_t wheel_peek(const struct wheel *wheel);

/*
 * Of the slots whose instants may have changed, tell up to `max` that keep it open whether any of
 * the wheel comes before an instant: the first, or if it is not known, some of its bucket. The
 * caller files each of them again, under its old instant if that has not changed, or nowhere. 0: no
 * slot comes before it; or one that has left the bucket since that was swept may have.
 */
unsigned wheel_doubt(struct wheel *wheel, uint64_t before_ns, uint32_t *slots, unsigned max);

/*
 * Move the base to `base_ns`, at most wheel_bound_ns(): forward, or while the wheel is empty also
 * back, after the wall clock was. Where that enters a bucket, the bucket is emptied: the result is
 * its first chunk, whose slots (and those of the next ones, see wheel_leave_chunk()) the caller
 * files again; else CHUNK_NONE. Their .where is left as it was.
 */
uint32_t wheel_enter(struct wheel *wheel, uint64_t base_ns);

/* Returns the `*ret_count` slots of a chunk, and their instants. */
static inline const struct timer_due *wheel_chunk_dues(const struct wheel *wheel, uint32_t chunk,
                                                       unsigned *ret_count)
{
	*ret_count = wheel->chunks[chunk].count;
	return wheel->chunks[chunk].entries;
}

/* Returns the next chunk of the same bucket, or CHUNK_NONE. */
static inline uint32_t wheel_next_chunk(const struct wheel *wheel, uint32_t chunk)
{
	return wheel->chunks[chunk].next;
}

/* Free a chunk whose slots the caller has filed. Returns the next of its bucket, or CHUNK_NONE. */
uint32_t wheel_leave_chunk(struct wheel *wheel, uint32_t chunk);

#endif
