/* SPDX-License-Identifier: MIT */
/*
 * A cell says what one thread does for a hub or a loop just now: whether it runs a callback, which
 * one, and since when. The thread writes its cell by plain stores, while timerhub_each_running()
 * and other processes read it.
 *
 * A name must never be wrong. So `state` changes with each call of the thread, `count` with each
 * callback of a call, and `fn` is 0 between callbacks. A reader loads these three before and after
 * the rest, and takes all of it again if one has changed. The thread stores in this order:
 *
 *   a call begins: queue, since_ns,           a callback begins: timer, count, fn
 *     count := 0, state
 *   it ends: state                            it ends: fn := 0, since_ns
 *
 * Each store is a release and each load an acquire. So a reader that has got anything newer than
 * the `fn` that it loaded first finds afterwards that `fn` is 0, or, if the next callback is the
 * same function, that `count` or `state` has changed.
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
	/* number of the call, above CELL_WHERE_BITS bits that say TIMERHUB_AWAY or _IN_CALL */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 state;
	atomic_u64 fn;    /* address of the callback that runs; 0: none does */
	atomic_u64 timer; /* the handle of its timer, or the address of its timeout */
	/* since when the thread does what the cell says, on the clock of the hub or loop */
	atomic_u64 since_ns;
	atomic_u64 queue; /* address of the queue that is or was dispatched; 0: none */
	atomic_u64 loop;  /* address of the loop whose cell this is; 0: of none */
	atomic_u64 unused;
	atomic_u32 clock; /* the thread's thread_clock(); 0: never used */
	atomic_u32 count; /* number of the callback in its call */
};

/* What a reader has found in a cell. */
struct cell_reading {
	uint32_t tid;       /* the thread, as its own namespace numbers it */
	uint32_t where;     /* an enum timerhub_where */
	uint64_t fn, timer; /* 0 unless a callback runs */
	uint64_t queue, loop;
	uint64_t since_ns;
};

/* ---- calls of the thread that has the cell, whose own loads are relaxed ---- */

/*
 * Returns the cell at *cell. The compiler must load it now: it would otherwise keep the addresses
 * of all its members on the stack, and load one for each store.
 */
static inline struct board_cell *cell_of(struct board_cell *const *cell)
{
	return *(struct board_cell *const volatile *)cell;
}

/* Returns the state, which says TIMERHUB_IN_CALL in a call and its callbacks, else _AWAY. */
static inline uint64_t cell_state(const struct board_cell *cell)
{
	return u64_load_relaxed(&cell->state);
}

/*
 * Says that the thread has entered a call into the library, when the clock said `now_ns`. `state`
 * is the cell's present state, which says that the thread was outside.
 */
static inline void cell_enter(struct board_cell *cell, uint64_t state, uint64_t now_ns)
{
	u64_store_release(&cell->since_ns, now_ns);
	/* because a count of the previous call could otherwise be reached again in this one */
	u32_store_release(&cell->count, 0);
	/* [cell] Who sees the new call sees its queue, and since when it is. */
	u64_store_release(&cell->state, state + TIMERHUB_IN_CALL);
}

/* Says that the thread has left its call into the library, and so is TIMERHUB_AWAY. */
static inline void cell_leave(struct board_cell *cell)
{
	u64_store_release(&cell->fn, 0); /* it is 0 already, unless an exception left a callback */
	/* [cell] Who sees what a later call stores sees that this one has ended. */
	u64_store_release(&cell->state,
	                  u64_load_relaxed(&cell->state) + CELL_WHERE_MASK + 1 - TIMERHUB_IN_CALL);
}

/*
 * Says that the thread is inside no call into the library (TIMERHUB_AWAY), whether it was in one or
 * not.
 */
static inline void cell_reset(struct board_cell *cell)
{
	u64_store_release(&cell->fn, 0);
	/* [cell] Who sees what a later call stores sees that an earlier one has ended. */
	u64_store_release(&cell->state, (u64_load_relaxed(&cell->state) | CELL_WHERE_MASK) + 1);
}

/* Says that the thread calls a callback, the `count`-th of the call. */
static inline void cell_begin(struct board_cell *cell, uint64_t fn, uint64_t timer, uint32_t count)
{
	u64_store_release(&cell->timer, timer);
	u32_store_release(&cell->count, count);
	/* [cell] Who sees the function sees its timer and its number. */
	u64_store_release(&cell->fn, fn);
}

/* Says that the callback has returned, and that the clock said `now_ns` then. */
static inline void cell_end(struct board_cell *cell, uint64_t now_ns)
{
	/*
	 * [cell] A reader that sees anything that is stored after this finds that no callback, or a
	 * later one, is running.
	 */
	u64_store_release(&cell->fn, 0);
	u64_store_release(&cell->since_ns, now_ns);
}

/* ---- calls of those who read ---- */

/*
 * Returns the number of the thread that has this CPU clock: the kernel has it above three bits,
 * complemented.
 */
static inline uint32_t cell_tid(uint32_t clock)
{
	return ~(clock >> 3 | UINT32_C(7) << 29);
}

/* How often a reader tries to find a cell unchanged. */
#define CELL_TRIES 64

/*
 * Reads a cell. Returns false if no thread has it. If the cell changes again and again while it is
 * read, the thread calls one short callback after the other, and the reading says that the thread
 * is inside its call and in no callback.
 */
static inline bool cell_read(const struct board_cell *cell, struct cell_reading *ret)
{
	uint32_t clock = 0;
	bool same = false;

	for (unsigned i = 0; i < CELL_TRIES && !same; i++) {
		/* [cell] What is loaded next is as new as these three, or newer. */
		uint64_t state = u64_load_acquire(&cell->state);
		uint32_t count;

		ret->fn = u64_load_acquire(&cell->fn);
		/* after `fn`, because until a call's first callback it is an earlier call's */
		count = u32_load_acquire(&cell->count);
		ret->timer = u64_load_acquire(&cell->timer);
		ret->since_ns = u64_load_acquire(&cell->since_ns);
		ret->queue = u64_load_acquire(&cell->queue);
		ret->loop = u64_load_acquire(&cell->loop);
		clock = u32_load_acquire(&cell->clock);
		ret->where = (uint32_t)(state & CELL_WHERE_MASK);
		/* [cell] If anything of that is newer than the three, one of them has changed. */
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
