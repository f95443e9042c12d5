/* SPDX-License-Identifier: MIT */
/*
 * The table of a loop's timeouts. A timeout has a place, which is an index of the table, as long as
 * it is added to the loop. The schedule holds places and no addresses, so nothing in it points to
 * the memory of a timeout that was removed.
 *
 * A free place keeps its entry in the schedule, and the next timeout that gets the place takes over
 * the entry. So a program that adds and removes a timeout for each request does not change the
 * schedule each time.
 *
 * place_grid() returns the number n that was chosen for the schedule entry of a place. Usually the
 * time of the entry is the deadline, rounded down to a multiple of 2^n ns (round_down_to_grid.h).
 * If the deadline was not rounded, the time of the entry need not be such a multiple.
 */
#ifndef TIMERHUB_TIMEOUT_TABLE_H
#define TIMERHUB_TIMEOUT_TABLE_H

#include <timerhub_loop.h>

#include "base/memory.h"
#include "schedule/entry.h"

/*
 * A place of the table, which has a timeout or is free. It has only 16 bytes, because a free place
 * keeps its state where the address and the callback were.
 */
struct place {
	uint64_t holder; /* the timeout's address; if the place is free, the PLACE_* bits below */
	union {
		timerhub_timeout_fn *fn; /* the timeout's callback */
		uint64_t filed_ns;       /* when the schedule entry of a free place comes up */
	};
};

#define PLACE_FREE ((uint64_t)1)   /* the place is free; bit 0 of an address is 0 */
#define PLACE_LISTED ((uint64_t)2) /* the place is in the list from which fresh_file() schedules */
#define PLACE_GRID_SHIFT 2         /* n, if the schedule entry is at a multiple of 2^n ns */
#define PLACE_GRID_MASK 63u
#define PLACE_NEXT_SHIFT 32 /* the index of the next free place, or SLOT_NONE */
_Static_assert(PLACE_GRID_MASK >= 63 && PLACE_GRID_MASK << PLACE_GRID_SHIFT <= UINT32_MAX,
               "a grid is a shift of 64 bits, and lies below the next place");
_Static_assert(TIMERHUB_LOOP_FRESH_MAX <= UINT8_MAX, "timeout.fresh counts from 1");

/* Returns the timeout that has this place of the table, or NULL if the place is free. */
static inline struct timerhub_timeout *place_timeout(const struct place *place)
{
	return place->holder & PLACE_FREE ? NULL
	                                  : (struct timerhub_timeout *)(uintptr_t)place->holder;
}

/*
 * The time of a schedule entry is usually the deadline with its low bits cleared. Returns how many
 * bits were chosen for the entry of this place.
 */
static inline unsigned place_grid(const struct place *place)
{
	const struct timerhub_timeout *timeout = place_timeout(place);

	return timeout ? timeout->grid
	               : (unsigned)(place->holder >> PLACE_GRID_SHIFT) & PLACE_GRID_MASK;
}

/*
 * The table of a loop's timeouts. Each timeout has a place from its add to its removal. The free
 * places are a stack, so that the last one freed is used next.
 */
struct places {
	struct place *table; /* an array of `max` places */
	uint32_t max;
	uint32_t used;  /* places from this index on have never had a timeout */
	uint32_t free;  /* the free place that is given out next, or SLOT_NONE */
	uint32_t taken; /* how many places have a timeout */
	struct memory memory;
};

/*
 * Reserves memory for a table of `max` places, which are all free. Returns 0 or a negative errno.
 */
int places_open(struct places *places, uint32_t max);
/* Releases the memory of the table. */
void places_close(struct places *places);

/* Gives a timeout a free place in the table. Returns false if no place is free. */
bool places_take(struct places *places, struct timerhub_timeout *timeout, timerhub_timeout_fn *fn);

/* Makes the place of a timeout free. The place keeps its schedule entry for the next timeout. */
void places_put(struct places *places, const struct timerhub_timeout *timeout);

#endif
