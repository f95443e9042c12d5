/* SPDX-License-Identifier: MIT */
/*
 * A cell says what one thread does for a hub or a loop just now: whether it runs a callback, which
 * one, and since when. The thread writes its cell by plain stores, while timerhub_each_running()
 * and other processes read it.
 *
 * A name must never be wrong, so a reader takes `state` before and after the rest, and takes all of
 * it again if `state` has changed. That is enough because the thread changes `fn`, `timer`, `queue`
 * and `loop` only while `state` does not say TIMERHUB_IN_CALLBACK, and `state` never has an old
 * value again. Each store is a release, so a reader that has seen a newer `fn` sees that `state`
 * has left the callback. `since_ns` can be a moment old outside callbacks.
 *
 * Labels: [cell] cell_begin, cell_end, cell_enter, cell_leave, cell_claim → cell_read: what the
 *         cell says, or that it has changed meanwhile.
 */
#ifndef TIMERHUB_THREAD_CELL_H
#define TIMERHUB_THREAD_CELL_H

#include <timerhub.h>

#include "base/atomic.h"
#include "base/bits.h"

#define CELL_WHERE_BITS 2
#define CELL_WHERE_MASK ((UINT64_C(1) << CELL_WHERE_BITS) - 1)
#define CELL_CLAIMED UINT64_MAX /* as a tid: a thread is just taking the cell */

struct board_cell {
	/* how often it has changed, above CELL_WHERE_BITS bits with an enum timerhub_where */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 state;
	atomic_u64 tid;      /* the thread, as its own namespace numbers it; 0: never used */
	atomic_u64 thread;   /* the thread's thread_self() */
	atomic_u64 fn;       /* the callback's address, while one runs */
	atomic_u64 timer;    /* the handle of its timer, or the address of its timeout */
	atomic_u64 queue;    /* address of the queue that is or was dispatched; 0: none */
	atomic_u64 loop;     /* address of the loop whose cell this is; 0: of none */
	atomic_u64 since_ns; /* since when it is so, on the clock of the hub or the loop */
};

/* What a cell said. */
struct cell_reading {
	uint32_t tid;
	uint32_t where;     /* an enum timerhub_where */
	uint64_t fn, timer; /* 0 unless a callback runs */
	uint64_t queue, loop;
	uint64_t since_ns;
};

/* How often a reader tries to find a cell unchanged. */
#define CELL_TRIES 64

/*
 * Reads a cell. Returns false if no thread has it. If the cell changes again and again while it is
 * read, the thread calls one short callback after the other, and the reading says that the thread
 * is inside its call and in no callback.
 */
static inline bool cell_read(const struct board_cell *cell, struct cell_reading *ret)
{
	uint64_t state, tid;
	bool same = false;

	for (unsigned i = 0; i < CELL_TRIES && !same; i++) {
		/* [cell] What is loaded next is as new as this state, or newer. */
		state = u64_load_acquire(&cell->state);
		tid = u64_load_acquire(&cell->tid);
		ret->fn = u64_load_acquire(&cell->fn);
		ret->timer = u64_load_acquire(&cell->timer);
		ret->queue = u64_load_acquire(&cell->queue);
		ret->loop = u64_load_acquire(&cell->loop);
		ret->since_ns = u64_load_acquire(&cell->since_ns);
		/* [cell] If anything of that is newer than the first state, this one is, too. */
		same = u64_load_acquire(&cell->state) == state;
	}
	ret->tid = (uint32_t)tid;
	ret->where = same ? (uint32_t)(state & CELL_WHERE_MASK) : TIMERHUB_IN_CALL;
	if (ret->where != TIMERHUB_IN_CALLBACK) {
		ret->fn = 0;
		ret->timer = 0;
	}
	return tid != 0 && tid != CELL_CLAIMED;
}

#endif
