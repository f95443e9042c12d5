/* SPDX-License-Identifier: MIT */
/*
 * Finds the cell in which a thread that dispatches a queue of an observable hub says what it does.
 * A thread keeps its cell from its first dispatch on, so that it can also be seen between two
 * calls.
 */
#ifndef TIMERHUB_THREAD_CELLS_H
#define TIMERHUB_THREAD_CELLS_H

#include "queue/queue.h"

/*
 * Returns the cell in which the calling thread says what it is doing, or NULL if all 256 belong to
 * other living threads. If the cell is new, *ret_taken is set to true.
 */
struct board_cell *thread_cells_find(struct board *board, uint32_t clock, uint64_t now_ns,
                                     bool *ret_taken);

/*
 * Stores when events were last taken from the queue. Relaxed is enough: the time is only shown, and
 * if two consumers store it at once, either may win.
 */
static inline void queue_note_taken(const struct timerhub_queue *queue, uint64_t now_ns)
{
	u64_store_relaxed(&queue->counts->taken_ns, now_ns);
}

/*
 * Stores the calling thread's cell in the queue, so that the thread's next dispatch need not search
 * for it.
 */
static inline void queue_note_cell(struct timerhub_queue *queue, struct board_cell *cell)
{
	/*
	 * Relaxed is enough, because whoever loads this pointer first checks whether the cell is
	 * his own.
	 */
	ptr_store_relaxed(&queue->cell, cell);
}

/* Tells whether a thread with this number exists in the calling process. */
bool thread_lives(uint32_t tid);

#endif
