/* SPDX-License-Identifier: MIT */
/*
 * A heap of tasks by time, under the journal's lock. tests/journal compares it with an unsorted
 * array.
 */
#include "journal/agenda.h"

#include <errno.h>
#include <stdlib.h>

#define ARITY 4u
#define CAPACITY_MIN 64u

int agenda_reserve(struct agenda *agenda, uint32_t count)
{
	uint32_t capacity = agenda->capacity > 0 ? agenda->capacity : CAPACITY_MIN;
	struct agenda_cell *cells;

	if (count <= agenda->capacity)
		return 0;
	while (capacity < count)
		capacity = capacity > UINT32_MAX / 2 ? UINT32_MAX : capacity * 2;
	cells = realloc(agenda->cells, capacity * sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	agenda->cells = cells;
	agenda->capacity = capacity;
	return 0;
}

void agenda_fini(struct agenda *agenda)
{
	free(agenda->cells);
	*agenda = (struct agenda){ .cells = NULL };
}

static bool agenda_before(struct agenda_cell a, struct agenda_cell b)
{
	return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : a.task->id < b.task->id;
}

static void agenda_place(struct agenda *agenda, uint32_t index, struct agenda_cell cell)
{
	agenda->cells[index] = cell;
	cell.task->agenda_index = index;
}

static void agenda_rise(struct agenda *agenda, uint32_t index, struct agenda_cell cell)
{
	while (index > 0) {
		uint32_t parent = (index - 1) / ARITY;

		if (!agenda_before(cell, agenda->cells[parent]))
			break;
		agenda_place(agenda, index, agenda->cells[parent]);
		index = parent;
	}
	agenda_place(agenda, index, cell);
}

static uint32_t agenda_earliest_child(const struct agenda *agenda, uint32_t index)
{
	uint64_t first = (uint64_t)index * ARITY + 1;
	uint64_t end = first + ARITY < agenda->count ? first + ARITY : agenda->count;
	uint32_t best = (uint32_t)first;

	for (uint32_t child = best + 1; child < end; child++)
		if (agenda_before(agenda->cells[child], agenda->cells[best]))
			best = child;
	return best;
}

static void agenda_sink(struct agenda *agenda, uint32_t index, struct agenda_cell cell)
{
	while ((uint64_t)index * ARITY + 1 < agenda->count) {
		uint32_t child = agenda_earliest_child(agenda, index);

		if (!agenda_before(agenda->cells[child], cell))
			break;
		agenda_place(agenda, index, agenda->cells[child]);
		index = child;
	}
	agenda_place(agenda, index, cell);
}

void agenda_insert(struct agenda *agenda, struct task *task, uint64_t time_ns)
{
	agenda_rise(agenda, agenda->count++,
	            (struct agenda_cell){ .time_ns = time_ns, .task = task });
}

uint64_t agenda_remove(struct agenda *agenda, struct task *task)
{
	uint32_t index = task->agenda_index;
	uint64_t time_ns = agenda->cells[index].time_ns;
	struct agenda_cell last = agenda->cells[--agenda->count];

	task->agenda_index = TASK_NOWHERE;
	if (index == agenda->count)
		return time_ns;
	if (index > 0 && agenda_before(last, agenda->cells[(index - 1) / ARITY]))
		agenda_rise(agenda, index, last);
	else
		agenda_sink(agenda, index, last);
	return time_ns;
}

struct task *agenda_first(const struct agenda *agenda)
{
	return agenda->count > 0 ? agenda->cells[0].task : NULL;
}

uint64_t agenda_first_ns(const struct agenda *agenda)
{
	return agenda->count > 0 ? agenda->cells[0].time_ns : UINT64_MAX;
}
