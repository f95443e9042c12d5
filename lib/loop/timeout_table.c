/* SPDX-License-Identifier: MIT */
/*
 * Implements the table of places of timeout_table.h. Tested through timerhub_loop.h by test_loop.c.
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

/* Returns the index of a free place, or SLOT_NONE if no place is free. */
static uint32_t places_find(struct places *places)
{
	uint32_t index = places->free;

	if (index != SLOT_NONE) {
		places->free = places->table[index].next;
		return index;
	}
	if (places->used == places->max)
		return SLOT_NONE;
	places->table[places->used].filed_ns = UINT64_MAX;
	return places->used++;
}

bool places_take(struct places *places, struct timerhub_timeout *timeout, timerhub_timeout_fn *fn)
{
	uint32_t index = places_find(places);
	struct place *place;

	if (index == SLOT_NONE)
		return false;
	place = &places->table[index];
	place->timeout = timeout;
	place->fn = fn;
	timeout->filed_ns = place->filed_ns;
	timeout->is_listed = place->is_listed;
	timeout->grid = place->grid;
	timeout->place = index;
	return true;
}

void places_put(struct places *places, const struct timerhub_timeout *timeout)
{
	uint32_t index = timeout->place;
	struct place *place = &places->table[index];

	invariant(index < places->used && place->timeout == timeout);
	*place = (struct place){
		.timeout = NULL,
		.filed_ns = timeout->filed_ns,
		.next = places->free,
		.is_listed = timeout->is_listed,
		.grid = timeout->grid,
	};
	places->free = index;
}
