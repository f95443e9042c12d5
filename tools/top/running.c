/* SPDX-License-Identifier: MIT */
/* Reads which thread does what. See running.h. */
#include "running.h"

#include <stdlib.h>

#include "reading.h"

static struct thread thread_before(const struct runnings *before, int tid)
{
	for (unsigned i = 0; before && i < before->count; i++)
		if (before->rows[i].thread.tid == tid)
			return before->rows[i].thread;
	return (struct thread){ .tid = 0 };
}

static void take_cell(struct runnings *now, const struct runnings *before,
                      const struct target *target, const struct hub *hub,
                      const struct board_cell *cell, uint64_t queue)
{
	struct running *row = &now->rows[now->count];

	if (now->count == RUNNING_MAX || !cell_read(cell, &row->cell) ||
	    row->cell.where > TIMERHUB_IN_CALLBACK ||
	    !thread_look(target->proc, (int)row->cell.tid, &row->thread))
		return;
	row->serial = hub->about.serial;
	row->queue = queue != 0 ? queue : row->cell.queue;
	row->for_ns = reading_more(hub_clock_ns(hub), row->cell.since_ns);
	row->before = thread_before(before, row->thread.tid);
	now->count++;
}

/* Orders threads inside callbacks before others, and then the longest first. */
static int compare(const void *left, const void *right)
{
	const struct running *one = left, *other = right;
	bool in_one = one->cell.where == TIMERHUB_IN_CALLBACK;
	bool in_other = other->cell.where == TIMERHUB_IN_CALLBACK;

	if (in_one != in_other)
		return in_one ? -1 : 1;
	if (one->for_ns != other->for_ns)
		return one->for_ns > other->for_ns ? -1 : 1;
	return one->cell.tid < other->cell.tid ? -1 : one->cell.tid > other->cell.tid;
}

void runnings_take(struct runnings *ret_now, const struct runnings *before,
                   const struct target *target)
{
	ret_now->count = 0;
	for (unsigned i = 0; i < target->hub_count; i++) {
		const struct hub *hub = &target->hubs[i];
		const struct board *board = hub->board;
		uint64_t end = u64_load_relaxed(&board->callers.queues_end);

		if (hub_is_loop(hub)) {
			take_cell(ret_now, before, target, hub, &board->loop.cell, 0);
			continue;
		}
		for (unsigned cell = 0; cell < BOARD_CELLS_MAX; cell++)
			take_cell(ret_now, before, target, hub, &board->cells[cell], 0);
		/* Reading an entry that no queue has used would allocate memory of the process. */
		for (uint64_t queue = 0; queue < end && queue < BOARD_QUEUES_MAX; queue++)
			if (u64_load_relaxed(&board->queues[queue].fd_plus_one) != 0)
				take_cell(ret_now, before, target, hub, &board->queues[queue].loop,
				          u64_load_relaxed(&board->queues[queue].address));
	}
	qsort(ret_now->rows, ret_now->count, sizeof(ret_now->rows[0]), compare);
}

const struct running *runnings_of_queue(const struct runnings *runnings, uint64_t serial,
                                        uint64_t queue)
{
	const struct running *found = NULL;

	for (unsigned i = 0; i < runnings->count; i++) {
		const struct running *row = &runnings->rows[i];

		if (row->serial != serial || row->queue != queue)
			continue;
		if (row->cell.where == TIMERHUB_IN_CALLBACK)
			return row;
		found = row; /* the later ones have been there for a shorter time */
	}
	return found;
}

const struct running *runnings_of_loop(const struct runnings *runnings, uint64_t loop)
{
	for (unsigned i = 0; i < runnings->count; i++)
		if (runnings->rows[i].cell.loop == loop)
			return &runnings->rows[i];
	return NULL;
}
