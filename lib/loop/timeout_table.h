/* SPDX-License-Identifier: MIT */
/*
 * Gives each timeout of a loop a place in a table, from add to remove. The schedule holds indexes
 * of this table, never addresses. A free place keeps its schedule entry for the next timeout that
 * gets the place.
 */
#ifndef TIMERHUB_TIMEOUT_TABLE_H
#define TIMERHUB_TIMEOUT_TABLE_H

#include <timerhub_loop.h>

#include "base/memory.h"
#include "schedule/entry.h"

/* 16 bytes. The low bit of `holder` says which of the two the place is. */
struct place {
	/*
	 * The timeout's address, whose low bits are 0; or of a free place: bit 0 is set, bit 1 says
	 * that the place is in the loop's list, bits 2 to 7 are its grid, and the upper half is the
	 * next free place or SLOT_NONE.
	 */
	uint64_t holder;
	union {
		timerhub_timeout_fn *fn; /* the timeout's callback */
		uint64_t filed_ns;       /* of a free place: time of its entry, or UINT64_MAX */
	};
};

#define PLACE_FREE ((uint64_t)1)
#define PLACE_LISTED ((uint64_t)2)
#define PLACE_GRID_SHIFT 2
#define PLACE_GRID_MASK 63u
#define PLACE_NEXT_SHIFT 32

/* Returns the timeout that has the place, or NULL if the place is free. */
static inline struct timerhub_timeout *place_timeout(const struct place *place)
{
	return place->holder & PLACE_FREE ? NULL
	                                  : (struct timerhub_timeout *)(uintptr_t)place->holder;
}

static inline unsigned place_grid(const struct place *place)
{
	const struct timerhub_timeout *timeout = place_timeout(place);

	return timeout ? timeout->grid
	               : (unsigned)(place->holder >> PLACE_GRID_SHIFT) & PLACE_GRID_MASK;
}

struct places {
	struct place *table; /* array of `max` places */
	uint32_t max;
	uint32_t used; /* places from this index on have never had a timeout */
	uint32_t free; /* the place that was freed last, or SLOT_NONE */
	uint32_t taken;
	struct memory memory;
};

/* Reserve memory for `max` places. Returns 0, or a negative errno. */
int places_open(struct places *places, uint32_t max);
void places_close(struct places *places);

/* Give the timeout the place that was freed last, and its entry. False: no place is free. */
bool places_take(struct places *places, struct timerhub_timeout *timeout, timerhub_timeout_fn *fn);

/* Free the timeout's place, which keeps its schedule entry, and its place in the list. */
void places_put(struct places *places, const struct timerhub_timeout *timeout);

#endif
