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
 * `count` starts at 0 in each call, and is loaded after `fn`. So a `count` belongs to the callback
 * `fn` or to a later one. If the later one is another function, `fn` has changed.
 *
 * Labels: [cell] cell_enter, cell_begin, cell_end, cell_leave → cell_read: what the cell says, or
 *         that it has changed.
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
	 * The number of the call; the low CELL_WHERE_BITS bits are TIMERHUB_AWAY or
	 * TIMERHUB_IN_CALL.
	 */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 state;
	atomic_u64 fn;    /* address of the callback that runs; 0: none does */
	atomic_u64 timer; /* the handle of its timer, or the address of its timeout */
	/* When the present call or callback began, on the clock of the hub or loop. */
	atomic_u64 since_ns;
	atomic_u64 queue; /* address of the queue that is or was dispatched; 0: none */
	atomic_u64 loop;  /* address of the loop whose cell this is; 0: of none */
	atomic_u64 unused;
	atomic_u32 clock; /* the thread's thread_clock(); 0: never used */
	atomic_u32 count; /* number of the callback in its call */
};

/* A copy of what a cell says, filled by cell_read(). */
struct cell_reading {
	uint32_t tid;       /* the thread's number in its own namespace */
	uint32_t where;     /* an enum timerhub_where */
	uint64_t fn, timer; /* 0 unless a callback runs */
	uint64_t queue, loop;
	uint64_t since_ns;
};

/* ---- calls of the thread that has the cell, whose own loads are relaxed ---- */

/*
 * Returns *cell, read as volatile, because gcc would otherwise keep each member's address on the
 * stack.
 */
static inline struct board_cell *cell_of(struct board_cell *const *cell)
{
	return *(struct board_cell *const volatile *)cell;
}

/* Returns the state, which says whether the thread is inside a call (TIMERHUB_IN_CALL). */
static inline uint64_t cell_state(const struct board_cell *cell)
{
	return u64_load_relaxed(&cell->state);
}

/*
 * Records that the thread has entered a call. `state` is from cell_state(), and says TIMERHUB_AWAY.
 */
static inline void cell_enter(struct board_cell *cell, uint64_t state, uint64_t now_ns)
{
	u64_store_release(&cell->since_ns, now_ns);
	/* Set `count` to 0, because it counts the callbacks of one call. */
	u32_store_release(&cell->count, 0);
	/*
	 * [cell] A reader that loads the new `state` also sees this call's `queue`, `since_ns` and
	 * `count`.
	 */
	u64_store_release(&cell->state, state + TIMERHUB_IN_CALL);
}

/* Records that the thread has left the library (TIMERHUB_AWAY). */
static inline void cell_leave(struct board_cell *cell)
{
	u64_store_release(&cell->fn, 0); /* it is 0 already, unless an exception left a callback */
	/* [cell] A reader that loads anything stored later also sees this `state`. */
	u64_store_release(&cell->state,
	                  u64_load_relaxed(&cell->state) + CELL_WHERE_MASK + 1 - TIMERHUB_IN_CALL);
}

/* Records that the thread is outside the library (TIMERHUB_AWAY), whatever the cell said before. */
static inline void cell_reset(struct board_cell *cell)
{
	u64_store_release(&cell->fn, 0);
	/* [cell] A reader that loads anything stored later also sees this `state`. */
	u64_store_release(&cell->state, (u64_load_relaxed(&cell->state) | CELL_WHERE_MASK) + 1);
}

/* Records that callback `fn` begins, as number `count` of the present call. */
static inline void cell_begin(struct board_cell *cell, uint64_t fn, uint64_t timer, uint32_t count)
{
	u64_store_release(&cell->timer, timer);
	u32_store_release(&cell->count, count);
	/* [cell] A reader that loads this `fn` also sees the `timer` and `count` above. */
	u64_store_release(&cell->fn, fn);
}

/* Records that the callback has returned at `now_ns`. */
static inline void cell_end(struct board_cell *cell, uint64_t now_ns)
{
	/*
	 * [cell] A reader that loads anything stored later also sees that this callback has ended.
	 */
	u64_store_release(&cell->fn, 0);
	u64_store_release(&cell->since_ns, now_ns);
}

/* ---- calls of those who read ---- */

/* Returns the thread of a CPU clock id, which has the complement of the tid above three bits. */
static inline uint32_t cell_tid(uint32_t clock)
{
	return ~(clock >> 3 | UINT32_C(7) << 29);
}

/* How often a reader tries to read a cell without its being changed meanwhile. */
#define CELL_TRIES 64

/* Reads a cell. Returns false if no thread has the cell. Shows no callback if it keeps changing. */
static inline bool cell_read(const struct board_cell *cell, struct cell_reading *ret)
{
	uint32_t clock = 0;
	bool same = false;

	for (unsigned i = 0; i < CELL_TRIES && !same; i++) {
		/*
		 * [cell] Each load acquires what the thread stored before the value (see the head
		 * of this file).
		 */
		uint64_t state = u64_load_acquire(&cell->state);
		uint32_t count;

		ret->fn = u64_load_acquire(&cell->fn);
		/* Load `count` after `fn` (see the head of this file). */
		count = u32_load_acquire(&cell->count);
		ret->timer = u64_load_acquire(&cell->timer);
		ret->since_ns = u64_load_acquire(&cell->since_ns);
		ret->queue = u64_load_acquire(&cell->queue);
		ret->loop = u64_load_acquire(&cell->loop);
		clock = u32_load_acquire(&cell->clock);
		ret->where = (uint32_t)(state & CELL_WHERE_MASK);
		/*
		 * [cell] If the callback or the call has ended meanwhile, `fn`, `count` or `state`
		 * has changed.
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
