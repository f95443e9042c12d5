/* SPDX-License-Identifier: MIT */
/*
 * What is due after the current finest bucket: a hierarchical timing wheel (G. Varghese and A.
 * Lauck, "Hashed and hierarchical timing wheels", 1987) of four levels with 4,096 buckets, the
 * finest 65.5 µs wide. It never ticks: bitmaps show the next occupied bucket. No atomics, no clock.
 */
#ifndef TIMERHUB_WHEEL_H
#define TIMERHUB_WHEEL_H

#include <stdbool.h>

#include "base/bits.h"
#include "base/cpu.h"
#include "schedule/entry.h"

#define WHEEL_FINEST_SHIFT 16 /* finest bucket: 2^16 ns */
#define WHEEL_DIGIT_BITS 12   /* 16 + 4 x 12 = 64 bits of a time */
#define WHEEL_LEVELS 4
#define WHEEL_DIGITS (1u << WHEEL_DIGIT_BITS)
#define WHEEL_BITMAP_WORDS (WHEEL_DIGITS / 64)
#define WHEEL_CHUNK_ENTRIES 20
#define WHEEL_ENTRY_BITS 5
#define CHUNK_NONE 0 /* chunk 0 is never used, so that zeroed memory means "none" */

/* Entries of a bucket, side by side in four cache lines. */
struct wheel_chunk {
	/* of the bucket or the free list, or CHUNK_NONE */
	_Alignas(CACHE_LINE_BYTES) uint32_t next;
	uint16_t bucket; /* level << 12 | digit */
	uint16_t count;  /* only a bucket's first chunk may be partly filled */
	struct timer_due entries[WHEEL_CHUNK_ENTRIES];
};

struct wheel_bucket {
	uint64_t bound_ns;   /* no slot of it is scheduled earlier */
	uint32_t first;      /* chunk */
	uint32_t bound_slot; /* slot at bound_ns; SLOT_NONE: it has left */
};

struct wheel_level {
	uint64_t summary;                    /* bit w: bitmap[w] is not 0 */
	uint64_t bitmap[WHEEL_BITMAP_WORDS]; /* bit d: bucket d is not empty */
	struct wheel_bucket buckets[WHEEL_DIGITS];
};

/*
 * A walk over a bucket's slots, chunk by chunk, in each from the last entry to the first: a removal
 * fills its hole with the first chunk's last entry, which was visited, so none is missed.
 */
struct wheel_sweep {
	struct wheel_bucket *bucket; /* NULL: none */
	/* `first` is the walk's chunk; the bound covers what was written since it began */
	struct wheel_bucket rest;
	unsigned entry; /* the chunk's entries from here on were visited */
};

struct wheel {
	struct timer_filing *filings; /* .where: WHERE_WHEEL | chunk << 5 | entry */
	uint64_t base_ns;             /* each slot is due after its finest bucket */
	struct wheel_level *levels;
	struct wheel_chunk *chunks;
	uint32_t chunks_used; /* those from here on were never used */
	uint32_t free_chunk;  /* or CHUNK_NONE */
	struct wheel_sweep sweep;
	/* a level's buckets up to here are not swept again, unless the base goes back */
	uint64_t swept_ns[WHEEL_LEVELS];
};

/*
 * The most for so many slots: each bucket may have one that is not full, one may be half emptied,
 * and chunk 0 is not used.
 */
static inline uint32_t wheel_chunks_for(uint32_t slots)
{
	uint64_t buckets = u64_min(slots, WHEEL_LEVELS * WHEEL_DIGITS);

	return (uint32_t)(2 + buckets + slots / WHEEL_CHUNK_ENTRIES);
}

/* `levels` and `chunks` are zeroed, and stay untouched. */
void wheel_init(struct wheel *wheel, struct wheel_level *levels, struct wheel_chunk *chunks,
                struct timer_filing *filings);

/* Is it after the base's finest bucket? */
static inline bool wheel_covers(const struct wheel *wheel, uint64_t at_ns)
{
	return at_ns >> WHEEL_FINEST_SHIFT > wheel->base_ns >> WHEEL_FINEST_SHIFT;
}

/* Not scheduled yet, at a time that the wheel covers; O(1). */
void wheel_insert(struct wheel *wheel, struct timer_due due);

/* What its move will touch. */
CPU_FETCHES void wheel_fetch(const struct wheel *wheel, uint32_t slot)
{
	uint32_t where = wheel->filings[slot].where & ~WHERE_MASK;
	const struct wheel_chunk *chunk = &wheel->chunks[where >> WHEEL_ENTRY_BITS];

	__builtin_prefetch(chunk, 1);
	__builtin_prefetch(&chunk->entries[where & ((1u << WHEEL_ENTRY_BITS) - 1)], 1);
}

CPU_FETCHES void wheel_fetch_chunk(const struct wheel *wheel, uint32_t chunk)
{
	const char *lines = (const char *)&wheel->chunks[chunk];

	for (unsigned i = 0; i < sizeof(*wheel->chunks); i += CACHE_LINE_BYTES)
		__builtin_prefetch(lines + i);
}

/* Both O(1). */
void wheel_remove(struct wheel *wheel, uint32_t slot);
uint64_t wheel_at_ns(const struct wheel *wheel, uint32_t slot);

/* True, with the new time in the entry, if both times are in one bucket; else nothing. */
bool wheel_move_within(struct wheel *wheel, uint32_t slot, uint64_t at_ns);

/* Of the first slot; earlier if a long bucket has lost its first. */
uint64_t wheel_bound_ns(const struct wheel *wheel);

/* And the cost of entering its bucket. */
struct wheel_first {
	uint64_t bound_ns; /* as wheel_bound_ns() */
	uint32_t slot;     /* SLOT_NONE: it has left a long bucket */
	bool is_alone;     /* in its bucket */
	bool is_of_many;   /* its bucket is long: dear to enter */
};

struct wheel_first wheel_first(const struct wheel *wheel);

/* What the first slot's removal will touch. Returns it, or SLOT_NONE. */
uint32_t wheel_peek(const struct wheel *wheel);

/*
 * Up to `max` slots whose entries may be stale: the first if it is known, else some of the first
 * bucket. The caller removes or schedules each again. Returns their number; 0: none before
 * `before_ns`, or the first bucket is long, was swept, and then lost its first slot:
 * wheel_bound_ns() may then be earlier than every slot.
 */
unsigned wheel_doubt(struct wheel *wheel, uint64_t before_ns, uint32_t *slots, unsigned max);

/*
 * To at most wheel_bound_ns(), forward, but for an empty wheel after a set-back wall clock. A
 * bucket that the base enters is emptied: its first chunk is returned, then the next by
 * wheel_leave_chunk(), and the caller schedules their slots, whose `where` is unchanged.
 * CHUNK_NONE: none entered.
 */
uint32_t wheel_enter(struct wheel *wheel, uint64_t base_ns);

/* `*ret_count` of them. */
static inline const struct timer_due *wheel_chunk_dues(const struct wheel *wheel, uint32_t chunk,
                                                       unsigned *ret_count)
{
	*ret_count = wheel->chunks[chunk].count;
	return wheel->chunks[chunk].entries;
}

/* Of the same bucket, or CHUNK_NONE. */
static inline uint32_t wheel_next_chunk(const struct wheel *wheel, uint32_t chunk)
{
	return wheel->chunks[chunk].next;
}

/* Its slots were scheduled again. Returns the next, or CHUNK_NONE. */
uint32_t wheel_leave_chunk(struct wheel *wheel, uint32_t chunk);

#endif
