/* SPDX-License-Identifier: MIT */
/*
 * Gives each timeout of a loop a place in a table, from add to remove. The schedule holds indexes
 * of this table, never addresses of timeouts. A free place keeps its schedule entry for the next
 * timeout that gets it. One thread uses a table, and the functions are pure.
 */
#ifndef TIMERHUB_PLACE_TABLE_H
#define TIMERHUB_PLACE_TABLE_H

#include <timerhub_loop.h>

#include "base/memory.h"
#include "schedule/entry.h"

struct place {
	struct timerhub_timeout *timeout; /* the timeout of the place; NULL: the place is free */
	timerhub_timeout_fn *fn;
	/*
	 * Of a free place: time of its schedule entry; equals timerhub_timeout.filed_ns otherwise.
	 */
	uint64_t filed_ns;
	uint32_t next;     /* of a free place: the next free place, or SLOT_NONE */
	uint8_t is_listed; /* of a free place, as `grid`: the value of timerhub_timeout */
	uint8_t grid;
};

struct places {
	struct place *table; /* array of `max` places */
	uint32_t max;
	uint32_t used; /* the places from this index on never had a timeout */
	uint32_t free; /* the place that was freed last, or SLOT_NONE */
	struct memory memory;
};

/* Reserve memory for `max` places. Returns 0, or a negative errno. */
int places_open(struct places *places, uint32_t max);
void places_close(struct places *places);

/*
 * Give the timeout a free place, and the schedule entry of that place. The place that was freed
 * last is used first. Returns false if no place is free.
 */
bool places_take(struct places *places, struct timerhub_timeout *timeout, timerhub_timeout_fn *fn);

/* Free the timeout's place, which keeps its schedule entry and whether it is listed. */
void places_put(struct places *places, const struct timerhub_timeout *timeout);

#endif
