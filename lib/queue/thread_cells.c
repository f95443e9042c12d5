/* SPDX-License-Identifier: MIT */
/*
 * On the counter board of an observable hub, each thread that dispatches has a cell, in which it
 * says what it is doing (thread_cells.h). The cells are a hash table, by the number of the thread.
 * While a thread sets up its cell, `clock` is CELL_CLAIMED, and readers skip the cell.
 *
 * A cell that was taken once is never free again, so a search may end at the first free cell. When
 * all cells are taken, a thread that needs one asks the kernel which of the cells' threads have
 * ended, and takes over the cell of one that has. If none has ended, nobody asks again for a
 * second. Otherwise each dispatch would ask in a process that has more threads than cells.
 *
 * thread_cells_find() loads `clock` with relaxed order. Only this thread stores its own clock id,
 * so if it has a cell, it finds that cell. If the loaded value is 0, cell_take() checks by a CAS
 * that the cell is still free.
 *
 * queue_note_cell() stores queue->cell with relaxed order. A thread that loads this pointer
 * compares the cell's `clock` with its own clock id. If they differ, it searches for its own cell.
 *
 * It is tested by tests/service/test_running.c.
 *
 * Labels: [cell-taken] cell_take → cell_take: what the cell's previous thread has stored in it.
 */
#define _GNU_SOURCE
#include "queue/thread_cells.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CELLS_LOOK_NS 1000000000u /* how often the kernel is asked which threads have ended */

bool thread_lives(uint32_t tid)
{
	return syscall(SYS_tgkill, getpid(), (pid_t)tid, 0) == 0 || errno != ESRCH;
}

/*
 * Returns the index of the cell that a search visits after `after` others. A search begins at the
 * thread's number, which the clock id holds above its lowest 3 bits.
 */
static inline unsigned cell_index(uint32_t clock, unsigned after)
{
	return ((clock >> 3) + after) % BOARD_CELLS_MAX;
}

/*
 * Tries to take a cell, the record in which the calling thread will show what it is doing. `before`
 * is the clock id of the thread that had the cell last, or 0. Returns false if another thread took
 * the cell first.
 */
static bool cell_take(struct board_cell *cell, uint32_t before, uint32_t clock, uint64_t now_ns)
{
	/*
	 * Acquire: this thread then sees what the cell's previous thread has stored in it.
	 * [cell-taken]
	 */
	if (!u32_cas_acquire(&cell->clock, &before, CELL_CLAIMED))
		return false;
	cell_reset(cell);
	u64_store_release(&cell->queue, 0);
	u64_store_release(&cell->since_ns, now_ns);
	/*
	 * Release: the next thread that takes this cell sees what this one has stored in it.
	 * [cell-taken]
	 */
	u32_store_release(&cell->clock, clock);
	return true;
}

/*
 * Finds a struct board_cell whose thread has ended, takes it for the calling thread, and returns
 * it. Returns NULL if there is no such cell, or if that was the result of a search within the last
 * second.
 */
static struct board_cell *cells_take_ended(struct board *board, uint32_t clock, uint64_t now_ns)
{
	/* Relaxed is enough: with an old time, this thread only makes an unnecessary search. */
	uint64_t looked_ns = u64_load_relaxed(&board->callers.looked_ns);

	if (looked_ns != 0 && now_ns - looked_ns < CELLS_LOOK_NS)
		return NULL;
	for (unsigned i = 0; i < BOARD_CELLS_MAX; i++) {
		struct board_cell *cell = &board->cells[cell_index(clock, i)];
		uint32_t before =
			u32_load_relaxed(&cell->clock); /* relaxed: the swap confirms it */

		if (before != CELL_CLAIMED && !thread_lives(cell_tid(before)) &&
		    cell_take(cell, before, clock, now_ns))
			return cell;
	}
	u64_store_relaxed(&board->callers.looked_ns, now_ns | 1); /* 0 would mean never */
	return NULL;
}

struct board_cell *thread_cells_find(struct board *board, uint32_t clock, uint64_t now_ns,
                                     bool *ret_taken)
{
	struct board_cell *cell;

	for (unsigned i = 0; i < BOARD_CELLS_MAX; i++) {
		uint32_t holder;

		cell = &board->cells[cell_index(clock, i)];
		/*
		 * Relaxed is enough: only this thread stores its own id, and cell_take() checks by
		 * a CAS that a cell is free.
		 */
		holder = u32_load_relaxed(&cell->clock);
		if (holder == clock)
			return cell;
		if (holder == 0 && cell_take(cell, 0, clock, now_ns)) {
			*ret_taken = true;
			return cell;
		}
	}
	cell = cells_take_ended(board, clock, now_ns);
	*ret_taken = cell != NULL;
	if (!cell)
		(void)u64_fetch_add_relaxed(&board->callers.without_cell, 1); /* only shown */
	return cell;
}
