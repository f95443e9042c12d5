/* SPDX-License-Identifier: MIT */
/*
 * Finds the cell of a thread that dispatches a queue of an observable hub. A thread keeps its cell
 * from its first dispatch on, so that it can also be seen while it is away.
 */
#ifndef TIMERHUB_THREAD_CELLS_H
#define TIMERHUB_THREAD_CELLS_H

#include "base/counter_board.h"

/*
 * Returns the calling thread's cell. If 256 other living threads have one, that is counted, and the
 * cell that is returned is on no board. `now_ns` is a reading of the hub's clock.
 */
struct board_cell *thread_cells_find(struct board *board, uint64_t now_ns);

/* Tells whether the thread with this number exists in the process. */
bool thread_lives(uint32_t tid);

#endif
