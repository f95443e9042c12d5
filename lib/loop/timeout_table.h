/* SPDX-License-Identifier: MIT */
/*
 * Gives each timeout of a loop a place in a table. A timeout keeps its place until the program
 * removes the timeout. The schedule holds indexes of this table, never addresses of timeouts. A
 * free place keeps its schedule entry for the next timeout that gets the place. Only one thread
 * uses a table.
 */
#ifndef TIMERHUB_TIMEOUT_TABLE_H
#define TIMERHUB_TIMEOUT_TABLE_H

#include <timerhub_loop.h>

#include "base/memory.h"
#include "schedule/entry.h"

struct place {
	/* the timeout that has the place; NULL: the place is free */
	struct timerhub_timeout *timeout;
	timerhub_timeout_fn *fn; /* callback of the timeout */
	/* The members `filed_ns` to `grid` are valid only while the place is free. */
	uint64_t filed_ns; /* time of the place's schedule entry, or UINT64_MAX without an entry */
	uint32_t next;     /* the next free place, or SLOT_NONE */
	uint8_t is_listed; /* 1: the place is in the loop's list */
	uint8_t grid;      /* shift of the schedule entry's grid */
};

struct places {
	struct place *table; /* array of `max` places */
	uint32_t max;
	uint32_t used; /* places from this index on have never had a timeout */
	uint32_t free; /* the place that was freed last, or SLOT_NONE if no place was freed */
	struct memory memory;
};

/* Reserve memory for `max` places. Returns 0, or a negative errno. */
int places_open(struct places *places, uint32_t max);
void places_close(struct places *places);

/*
 * Give the timeout a free place, and the schedule entry of this place. places_take() takes the
 * place that was freed last. If no place is free, returns false.
 */
bool places_take(struct places *places, struct timerhub_timeout *timeout, timerhub_timeout_fn *fn);

/*
 * Free the timeout's place. The place keeps its schedule entry, and stays in the list if it was
 * listed.
 */
void places_put(struct places *places, const struct timerhub_timeout *timeout);

#endif
