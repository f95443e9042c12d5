/* SPDX-License-Identifier: MIT */
/*
 * Says which thread runs which timer's callback, so that timerhub_cancel_sync() can wait until it
 * has ended. Each thread that dispatches has a cell, and pays two stores and an exchange for each
 * event. Only a canceller has to search through the cells.
 */
#ifndef TIMERHUB_RUNNING_CALLBACKS_H
#define TIMERHUB_RUNNING_CALLBACKS_H

#include "base/memory.h"
#include "base/thread_self.h"
#include "timer/timer.h"

#ifndef CALLBACKS_MAX
#define CALLBACKS_MAX 16384
#endif

#define NOW_RUNNING ((uint64_t)1) /* the callback runs, or is about to */
#define NOW_WAITED ((uint64_t)2)  /* a canceller waits for the callback's end */
#define NOW_FLAGS (NOW_RUNNING | NOW_WAITED)
#define NOW_SHIFT 2

/* The cell of a thread that dispatches. */
struct callback {
	/*
	 * handle << 2 | flags while a callback runs or is about to, else 0. The thread that has the
	 * cell writes it, and a canceller that waits adds NOW_WAITED.
	 */
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

/* Takes a cell for the calling thread. Returns false if another thread has it. */
static inline bool callback_claim(struct callbacks *callbacks, uint32_t index)
{
	struct callback *callback = &callbacks->cells[index];
	uint64_t none = 0;

	/* Relaxed: a hint. [callback-cell] The cell is this thread's to write once it has it. */
	if (u64_load_relaxed(&callback->thread) != 0 ||
	    !u64_cas_acquire(&callback->thread, &none, thread_self()))
		return false;
	/*
	 * `end` is raised before this thread delivers its first timer. So a canceller that finds
	 * the timer delivered also sees the new end, and does not miss this cell in its search.
	 */
	u64_raise(&callbacks->end, index + 1);
	return true;
}

/* Does the work of callbacks_enter() if another thread has the cell at the hint. */
struct callback *callbacks_enter_elsewhere(struct callbacks *callbacks, unsigned cpu);

/*
 * Takes a cell for the calling thread, which is about to dispatch. `cpu` is a hint where to look
 * for a free one. If all are taken, it waits.
 */
static inline struct callback *callbacks_enter(struct callbacks *callbacks, unsigned cpu)
{
	uint32_t index = cpu % CALLBACKS_MAX;

	return callback_claim(callbacks, index) ? &callbacks->cells[index]
	                                        : callbacks_enter_elsewhere(callbacks, cpu);
}

/* Notes in the cell that its thread is about to try to deliver this timer. */
void callback_consider(struct callback *callback, uint64_t handle);

/* Notes in the cell that its thread has delivered this timer and is about to run its callback. */
void callback_begin(struct callback *callback, uint64_t handle);

/* Wakes the cancellers that wait for a callback, which has just returned. */
void callback_wake(struct callback *callback) __attribute__((cold));

/*
 * Notes that the callback has returned, and wakes the cancellers that wait for it. This is inline
 * because it is done for each callback.
 */
static inline void callback_end(struct callback *callback)
{
	/* [callback-end] A canceller that sees the 0 sees all that the callback has written. */
	if ((u64_exchange_release(&callback->now, 0) & NOW_WAITED) != 0)
		callback_wake(callback);
}

/* Lets another thread take the cell. */
static inline void callback_free(struct callback *callback)
{
	/* [callback-end] A canceller that sees the 0 may free what the last callback used. */
	u64_store_release(&callback->now, 0);
	/* [callback-cell] Another thread may take the cell, and write to it. */
	u64_store_release(&callback->thread, 0);
}

/* Does the work of callbacks_leave() if the thread is still inside a callback. */
void callback_leave(struct callback *callback) __attribute__((cold));

/*
 * Gives the cell back at the end of a dispatch. If an exception has left a callback, that callback
 * is first noted as ended.
 */
static inline void callbacks_leave(struct callback *callback)
{
	/* Relaxed: only this thread sets it. It is set if an exception has left a callback. */
	if ((u64_load_relaxed(&callback->now) & NOW_RUNNING) != 0)
		callback_leave(callback);
	else
		callback_free(callback);
}

/* Tells whether the calling thread is inside this timer's callback. */
bool callbacks_inside(const struct callbacks *callbacks, uint64_t handle);

/*
 * Waits until no other thread is about to deliver the timer and, if `running`, until none runs its
 * callback. The caller has made sure that no further delivery can begin.
 */
void callbacks_wait(const struct callbacks *callbacks, uint64_t handle, bool running);

#endif
