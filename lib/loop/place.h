/* SPDX-License-Identifier: MIT */
/*
 * The table of a loop's places. The schedule files places, never addresses; a place names the
 * timeout that has it. A timeout has one from add to remove. A place that is given back keeps its
 * filing for the timeout that gets it next. Single-threaded and pure.
 */
#ifndef TIMERHUB_PLACE_H
#define TIMERHUB_PLACE_H

#include <timerhub_loop.h>

#include "base/memory.h"
#include "schedule/filing.h"

struct place {
	struct timerhub_timeout *timeout; /* NULL: free */
	timerhub_timeout_fn *fn;
	uint64_t filed_ns; /* of a free place: as timerhub_timeout.filed_ns */
	uint32_t next;     /* of a free place: the next free one, or SLOT_NONE */
	uint8_t is_listed; /* of a free place, like the next: as in timerhub_timeout */
	uint8_t grid;
};

struct places {
	struct place *table; /* `max` of them */
	uint32_t max;
	uint32_t used; /* places from here on never had a timeout */
	uint32_t free; /* the place given back last, or SLOT_NONE */
	struct memory memory;
};

/* Reserve memory for `max` places. 0, or a negative errno. */
int places_open(struct places *places, uint32_t max);
void places_close(struct places *places);

/*
 * Give the timeout a place, and the filing of that place. The place that was given back last goes
 * first. False: there is none.
 */
bool places_take(struct places *places, struct timerhub_timeout *timeout, timerhub_timeout_fn *fn);

/* Take the timeout's place back, with its filing and whether it is listed. */
void places_put(struct places *places, const struct timerhub_timeout *timeout);

#endif
