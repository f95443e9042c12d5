/* SPDX-License-Identifier: MIT */
/*
 * Says which thread runs which timer's callback, so that timerhub_cancel_sync() can wait until it
 * has ended. Each thread that dispatches has a cell, and pays two stores and an exchange for each
 * event. Only a canceller has to search through the cells.
 */
#ifndef TIMERHUB_RUNNING_CALLBACKS_H
#define TIMERHUB_RUNNING_CALLBACKS_H

#include "base/memory.h"
#include "timer/timer.h"

/* The cell of a thread that dispatches. */
struct callback {
	/* handle << 2 | flags, or 0, written by the cell's thread; a canceller adds NOW_WAITED */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 now;
	atomic_u64 thread; /* thread_self() of the thread that has the cell; 0: it is free */
	atomic_u32 ended;  /* futex: how many callbacks have ended for which a canceller waited */
};

struct callbacks {
	struct callback *cells;
	struct memory memory;
	atomic_u64 end; /* the cells from this one on have never been used */
};

int callbacks_open(struct callbacks *callbacks);
void callbacks_close(struct callbacks *callbacks);

/*
 * Takes a cell for the calling thread, which is about to dispatch. `cpu` is a hint where to look
 * for a free one. If all are taken, it waits.
 */
struct callback *callbacks_enter(struct callbacks *callbacks, unsigned cpu);

/* Gives the cell back at the end of the dispatch. */
void callbacks_leave(struct callback *callback);

/* Notes that the thread is about to deliver this timer, before it tries. */
void callback_consider(struct callback *callback, uint64_t handle);

/* Notes that the timer is delivered, and that its callback is about to run. */
void callback_begin(struct callback *callback, uint64_t handle);

/* Notes that the callback has returned, and wakes those who wait for it. */
void callback_end(struct callback *callback);

/* Tells whether the calling thread is inside this timer's callback. */
bool callbacks_inside(const struct callbacks *callbacks, uint64_t handle);

/*
 * Waits until no other thread is about to deliver the timer and, if `running`, until none runs its
 * callback. The caller has made sure that no further delivery can begin.
 */
void callbacks_wait(const struct callbacks *callbacks, uint64_t handle, bool running);

#endif
