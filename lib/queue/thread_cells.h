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
 * Returns the cell of the calling thread, whose thread_clock() is `clock`. A thread that has none
 * yet gets one, and *ret_taken is set to true. If 256 other living threads have one, that is
 * counted, and the result is NULL. `now_ns` is the hub's time.
 */
struct board_cell *thread_cells_find(struct board *board, uint32_t clock, uint64_t now_ns,
                                     bool *ret_taken);

/*
 * Stores when events were last taken from the queue. Relaxed is enough, because it is only shown.
 * If two consumers store a time at once, either of them may stay.
 */
static inline void queue_note_taken(const struct timerhub_queue *queue, uint64_t now_ns)
{
	u64_store_relaxed(&queue->counts->taken_ns, now_ns);
}

/*
 * Remembers in the queue the cell of the calling thread, so that the thread's next dispatch need
 * not search for the cell. (A thread says in its cell what it is doing.) Relaxed is enough: if two
 * threads store their cells at the same time, either may stay, because a thread that finds
 * another's cell searches for its own.
 */
static inline void queue_note_cell(struct timerhub_queue *queue, struct board_cell *cell)
{
	ptr_store_relaxed(&queue->cell, cell);
}

/* Tells whether a thread with this number exists in the calling process. */
bool thread_lives(uint32_t tid);

#endif
