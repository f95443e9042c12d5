/* SPDX-License-Identifier: MIT */
/*
 * The table of a loop's timeouts. A timeout has a place, which is an index of the table, as long as
 * it is added to the loop. The schedule holds places and no addresses, so nothing in it points to
 * the memory of a timeout that was removed.
 *
 * A free place keeps its entry in the schedule, and the next timeout that gets the place takes over
 * the entry. So a program that adds and removes a timeout for each request does not change the
 * schedule each time.
 */
#ifndef TIMERHUB_TIMEOUT_TABLE_H
#define TIMERHUB_TIMEOUT_TABLE_H

#include <timerhub_loop.h>

#include "base/memory.h"
#include "schedule/entry.h"

/*
 * A place of the table. It has a timeout or is free, as bit 0 of `holder` says. It needs only 16
 * bytes, because a free place keeps its state where the timeout's address and callback were.
 */
struct place {
	/*
	 * The address of the timeout to which this element of the table belongs. Bit 0 of the
	 * address is 0. If the element is free, bit 0 is 1, and the other bits mean:
	 * - Bit 1: the element is in the list from which fresh_file() schedules timeouts.
	 * - Bits 2 to 7: n, if its schedule entry was rounded down to a multiple of 2^n ns.
	 * - The upper half: the index of the next free element, or SLOT_NONE.
	 */
	uint64_t holder;
	union {
		timerhub_timeout_fn *fn; /* the timeout's callback */
		uint64_t filed_ns;       /* when the schedule entry of a free place comes up */
	};
};

#define PLACE_FREE ((uint64_t)1)
#define PLACE_LISTED ((uint64_t)2)
#define PLACE_GRID_SHIFT 2
#define PLACE_GRID_MASK 63u
#define PLACE_NEXT_SHIFT 32
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
 * Returns the n of a timeout's schedule entry: the entry is at the deadline rounded down to a
 * multiple of 2^n ns. If that is only a little earlier than the deadline, the entry is at the
 * deadline itself.
 */
static inline unsigned place_grid(const struct place *place)
{
	const struct timerhub_timeout *timeout = place_timeout(place);

	return timeout ? timeout->grid
	               : (unsigned)(place->holder >> PLACE_GRID_SHIFT) & PLACE_GRID_MASK;
}

/*
 * The table of a loop's timeouts. Each timeout has one place, an element of the table, while it is
 * added to the loop. The free places form a stack, so that the place that was freed last is used
 * next.
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

/*
 * Gives a timeout a free place, an element of the table. A freed place keeps its schedule entry, so
 * that removing and adding timeouts does not change the schedule each time. The timeout takes over
 * that entry. Returns false if no place is free.
 */
bool places_take(struct places *places, struct timerhub_timeout *timeout, timerhub_timeout_fn *fn);

/*
 * Frees the element of the table that belongs to a timeout. The element keeps its schedule entry,
 * which the next timeout that gets the element takes over. If the element is in the list from which
 * fresh_file() schedules timeouts, it stays in that list.
 */
void places_put(struct places *places, const struct timerhub_timeout *timeout);

#endif
