/* SPDX-License-Identifier: MIT */
/*
 * A cell says what one thread is doing for a hub or a loop: whether it runs a callback, which one,
 * and since when. The thread writes its cell, and timerhub_each_running() and other processes read
 * it.
 *
 * A reader must never show a wrong function. So `state` changes with each call of the thread,
 * `count` with each callback of a call, and `fn` is 0 between callbacks. A reader loads these three
 * before and after the rest, and reads everything again if one of them has changed. The thread
 * stores in this order:
 *
 *   a call begins: queue, since_ns,           a callback begins: timer, count, fn
 *     count := 0, state
 *   it ends: state                            it ends: fn := 0, since_ns
 *
 * Each store is a release and each load an acquire. So a reader that has got anything newer than
 * the `fn` that it loaded first finds afterwards that `fn` is 0, or, if the next callback is the
 * same function, that `count` or `state` has changed.
 *
 * cell_leave() and cell_reset() add to `state` so much that its low bits become 0 (TIMERHUB_AWAY),
 * and that the number of the call, in the bits above them, grows by 1.
 *
 * cell_read() loads `count` after `fn`. If another callback of the same function begins between
 * these two loads, the loaded `fn` is right for that callback too.
 *
 * Labels: [cell] cell_enter, cell_begin, cell_end, cell_leave, cell_reset → cell_read: what the
 *         cell says, or that it has changed.
 */
#ifndef TIMERHUB_THREAD_CELL_H
#define TIMERHUB_THREAD_CELL_H

#include <timerhub.h>

#include "base/atomic.h"
#include "base/bits.h"

#define CELL_WHERE_BITS 2
#define CELL_WHERE_MASK ((UINT64_C(1) << CELL_WHERE_BITS) - 1)
#define CELL_CLAIMED UINT32_MAX /* as a clock: a thread is just taking the cell */

struct board_cell {
	/*
	 * The number of the call; in the low CELL_WHERE_BITS bits, TIMERHUB_AWAY or
	 * TIMERHUB_IN_CALL.
	 */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 state;
	atomic_u64 fn;    /* address of the callback that runs; 0: none does */
	atomic_u64 timer; /* the handle of its timer, or the address of its timeout */
	/*
	 * When the thread began what it is doing now, for example its present callback, on the
	 * clock of the hub or loop.
	 */
	atomic_u64 since_ns;
	atomic_u64 queue; /* address of the queue that is or was dispatched; 0: none */
	atomic_u64 loop;  /* address of the loop whose cell this is; 0: of none */
	atomic_u64 unused;
	atomic_u32 clock; /* the thread's thread_clock(); 0: never used */
	atomic_u32 count; /* number of the callback in its call */
};

/*
 * What a thread is doing, for example which callback it is running. cell_read() fills it from the
 * record that the thread writes, a struct board_cell.
 */
struct cell_reading {
	uint32_t tid;       /* the thread's number in its own namespace */
	uint32_t where;     /* an enum timerhub_where */
	uint64_t fn, timer; /* 0 unless a callback runs */
	uint64_t queue, loop;
	uint64_t since_ns;
};

/* ---- calls of the thread that has the cell, whose own loads are relaxed ---- */

/*
 * Returns *cell. The pointer is read as volatile, because gcc would otherwise keep the address of
 * each member on the stack, and load one for each store.
 */
static inline struct board_cell *cell_of(struct board_cell *const *cell)
{
	return *(struct board_cell *const volatile *)cell;
}

/*
 * Returns the word `state`, whose low bits say whether the thread is inside a call into the library
 * (TIMERHUB_IN_CALL) or outside (TIMERHUB_AWAY).
 */
static inline uint64_t cell_state(const struct board_cell *cell)
{
	return u64_load_relaxed(&cell->state);
}

/*
 * Records for other threads and processes that the thread has entered the library at `now_ns`. The
 * caller must have got `state` from cell_state(), and its low bits must say that the thread is
 * outside the library (TIMERHUB_AWAY).
 */
static inline void cell_enter(struct board_cell *cell, uint64_t state, uint64_t now_ns)
{
	u64_store_release(&cell->since_ns, now_ns);
	/*
	 * Set `count` to 0, because the thread has shown no callback since it entered the library.
	 */
	u32_store_release(&cell->count, 0);
	/*
	 * Release: if cell_read() finds this `state`, it also finds the `queue`, `since_ns` and
	 * `count` of this call. [cell]
	 */
	u64_store_release(&cell->state, state + TIMERHUB_IN_CALL);
}

/*
 * Records that the thread has returned from a call into the library, and is outside the library now
 * (TIMERHUB_AWAY).
 */
static inline void cell_leave(struct board_cell *cell)
{
	u64_store_release(&cell->fn, 0); /* it is 0 already, unless an exception left a callback */
	/*
	 * Release: if cell_read() finds a value that the thread stores in its next call, it also
	 * finds this `state`. [cell]
	 */
	u64_store_release(&cell->state,
	                  u64_load_relaxed(&cell->state) + CELL_WHERE_MASK + 1 - TIMERHUB_IN_CALL);
}

/* Records that the thread is outside the library (TIMERHUB_AWAY), whatever the cell said before. */
static inline void cell_reset(struct board_cell *cell)
{
	u64_store_release(&cell->fn, 0);
	/*
	 * Release: if cell_read() finds a value that is stored later, it also finds this `state`.
	 * [cell]
	 */
	u64_store_release(&cell->state, (u64_load_relaxed(&cell->state) | CELL_WHERE_MASK) + 1);
}

/*
 * Records for other threads and processes that the thread is about to run the callback `fn`, the
 * `count`-th of its present call into the library.
 */
static inline void cell_begin(struct board_cell *cell, uint64_t fn, uint64_t timer, uint32_t count)
{
	u64_store_release(&cell->timer, timer);
	u32_store_release(&cell->count, count);
	/*
	 * Release: if cell_read() finds this `fn`, it also finds the `timer` and `count` that were
	 * stored above. [cell]
	 */
	u64_store_release(&cell->fn, fn);
}

/*
 * Records that the thread's callback has returned at `now_ns`, so that other threads and processes
 * can see it.
 */
static inline void cell_end(struct board_cell *cell, uint64_t now_ns)
{
	/*
	 * Release: if cell_read() finds a value of the next callback, it also finds that this
	 * callback has ended. [cell]
	 */
	u64_store_release(&cell->fn, 0);
	u64_store_release(&cell->since_ns, now_ns);
}

/* ---- calls of those who read ---- */

/*
 * Returns the number of the thread whose CPU clock has this id. The kernel stores it in the id
 * above three bits, complemented.
 */
static inline uint32_t cell_tid(uint32_t clock)
{
	return ~(clock >> 3 | UINT32_C(7) << 29);
}

/* How often a reader tries to read a cell without its being changed meanwhile. */
#define CELL_TRIES 64

/*
 * Reads what the thread of a cell is doing. Returns false if no thread has the cell. If the cell
 * keeps changing, the result says that no callback runs.
 */
static inline bool cell_read(const struct board_cell *cell, struct cell_reading *ret)
{
	uint32_t clock = 0;
	bool same = false;

	for (unsigned i = 0; i < CELL_TRIES && !same; i++) {
		/* Acquire: the loads below find values at least as new as this `state`. [cell] */
		uint64_t state = u64_load_acquire(&cell->state);
		uint32_t count;

		/*
		 * Acquire: if this is the `fn` of a callback, the next loads find its `count` and
		 * `timer`, or newer ones. [cell]
		 */
		ret->fn = u64_load_acquire(&cell->fn);
		count = u32_load_acquire(&cell->count);
		ret->timer = u64_load_acquire(&cell->timer);
		ret->since_ns = u64_load_acquire(&cell->since_ns);
		ret->queue = u64_load_acquire(&cell->queue);
		ret->loop = u64_load_acquire(&cell->loop);
		clock = u32_load_acquire(&cell->clock);
		ret->where = (uint32_t)(state & CELL_WHERE_MASK);
		/*
		 * If `fn`, `count` and `state` have not changed while the others were loaded, all
		 * these values belong to the same callback. [cell]
		 */
		same = u64_load_acquire(&cell->fn) == ret->fn &&
		       u32_load_acquire(&cell->count) == count &&
		       u64_load_acquire(&cell->state) == state;
	}
	if (!same) {
		ret->where = TIMERHUB_IN_CALL;
		ret->fn = 0;
	}
	if (ret->fn != 0)
		ret->where = TIMERHUB_IN_CALLBACK;
	else
		ret->timer = 0;
	ret->tid = cell_tid(clock);
	return clock != 0 && clock != CELL_CLAIMED;
}

#endif
