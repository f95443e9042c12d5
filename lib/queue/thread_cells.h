/* SPDX-License-Identifier: MIT */
/*
 * Finds the cell of a thread that dispatches a queue of an observable hub. A thread keeps its cell
 * from its first dispatch on, so that it can also be seen while it is away.
 */
#ifndef TIMERHUB_THREAD_CELLS_H
#define TIMERHUB_THREAD_CELLS_H

#include "queue/queue.h"

/*
 * Returns the cell of the calling thread, whose thread_clock() is `clock`. If 256 other living
 * threads have one, that is counted, and it returns NULL. `now_ns` is a reading of the hub's clock.
 * Sets *ret_taken to true if the thread had none until now.
 */
struct board_cell *thread_cells_find(struct board *board, uint32_t clock, uint64_t now_ns,
                                     bool *ret_taken);

/*
 * Notes when events were taken from the queue. Relaxed: if two consumers store it at once, the time
 * of either may stay, and it is only shown.
 */
static inline void queue_note_taken(const struct timerhub_queue *queue, uint64_t now_ns)
{
	u64_store_relaxed(&queue->counts->taken_ns, now_ns);
}

/*
 * Leaves a thread's cell in the queue for its next dispatch. Relaxed: if two consumers store
 * theirs at once, either may stay, because a thread that finds another's cell looks for its own.
 */
static inline void queue_note_cell(struct timerhub_queue *queue, struct board_cell *cell)
{
	ptr_store_relaxed(&queue->cell, cell);
}

/* Tells whether the thread with this number exists in the process. */
bool thread_lives(uint32_t tid);

#endif
