/* SPDX-License-Identifier: MIT */
/*
 * Gives each timeout of a loop an index in a table, by which the schedule names the timeout
 * (timeout_table.h). tests/unit/test_loop.c tests the table through the calls of timerhub_loop.h.
 */
#include "loop/timeout_table.h"

#include "base/invariant.h"

int places_open(struct places *places, uint32_t max)
{
	int result = memory_reserve(&places->memory, max * sizeof(struct place));

	if (result < 0)
		return result;
	places->table = places->memory.base;
	places->max = max;
	places->used = 0;
	places->free = SLOT_NONE;
	return 0;
}

void places_close(struct places *places)
{
	memory_release(&places->memory);
}

/* Takes a free place and returns its index in the table, or SLOT_NONE if all places are taken. */
static uint32_t places_find(struct places *places)
{
	uint32_t index = places->free;

	if (index != SLOT_NONE) {
		invariant(index < places->used && !place_timeout(&places->table[index]));
		places->free = (uint32_t)(places->table[index].holder >> PLACE_NEXT_SHIFT);
		return index;
	}
	if (places->used == places->max)
		return SLOT_NONE;
	places->table[places->used] =
		(struct place){ .holder = PLACE_FREE, .filed_ns = UINT64_MAX };
	return places->used++;
}

bool places_take(struct places *places, struct timerhub_timeout *timeout, timerhub_timeout_fn *fn)
{
	uint32_t index = places_find(places);
	struct place *place;

	if (index == SLOT_NONE)
		return false;
	place = &places->table[index];
	timeout->filed_ns = place->filed_ns;
	timeout->is_listed = (place->holder & PLACE_LISTED) != 0;
	timeout->grid = (uint8_t)place_grid(place);
	timeout->place = index;
	*place = (struct place){ .holder = (uintptr_t)timeout, .fn = fn };
	places->taken++;
	return true;
}

void places_put(struct places *places, const struct timerhub_timeout *timeout)
{
	uint32_t index = timeout->place;
	struct place *place = &places->table[index];

	invariant(index < places->used && place_timeout(place) == timeout);
	*place = (struct place){
		.holder = PLACE_FREE | (timeout->is_listed ? PLACE_LISTED : 0) |
		          (uint64_t)timeout->grid << PLACE_GRID_SHIFT |
		          (uint64_t)places->free << PLACE_NEXT_SHIFT,
		.filed_ns = timeout->filed_ns,
	};
	places->free = index;
	places->taken--;
}
