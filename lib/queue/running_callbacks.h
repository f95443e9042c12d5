/* SPDX-License-Identifier: MIT */
/*
 * Says which thread runs which timer's callback, so that timerhub_cancel_sync() can wait until the
 * callback has ended. Each thread that dispatches events has a cell, and pays two stores and an
 * exchange for each event. Only a thread that cancels has to search the cells.
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

/*
 * While a thread dispatches events, it owns one of these structs, its cell. In it the thread
 * records the timer whose callback it runs.
 */
struct callback {
	/*
	 * The timer whose event the thread delivers or whose callback it runs: handle << NOW_SHIFT,
	 * and the flags NOW_RUNNING and NOW_WAITED. 0: none.
	 */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 now;
	atomic_u64 thread; /* thread_self() of the thread that has this; 0: it is free */
	atomic_u32 ended;  /* futex: how many callbacks that a canceller waited for have ended */
};

struct callbacks {
	struct callback *cells;
	struct memory memory;
	atomic_u64 end; /* the cells from this one on have never been used */
};

int callbacks_open(struct callbacks *callbacks);
void callbacks_close(struct callbacks *callbacks);

/*
 * Takes the cell with this index for the calling thread, which will record in it whose callback it
 * runs. Returns false if another thread has the cell.
 */
static inline bool callback_claim(struct callbacks *callbacks, uint32_t index)
{
	struct callback *callback = &callbacks->cells[index];
	uint64_t none = 0;

	/* Relaxed is enough, because the CAS checks once more that no thread owns the cell. */
	if (u64_load_relaxed(&callback->thread) != 0 ||
	    /*
	     * Acquire: this thread then sees what the cell's previous owner has stored in it.
	     * [callback-cell]
	     */
	    !u64_cas_acquire(&callback->thread, &none, thread_self()))
		return false;
	/*
	 * Raise `end` before the first event is delivered, because cancellers search only the cells
	 * below `end`.
	 */
	u64_raise(&callbacks->end, index + 1);
	return true;
}

/*
 * Does the rest of callbacks_enter() if the first cell that it tries is taken: searches all cells,
 * and waits until one is free.
 */
struct callback *callbacks_enter_elsewhere(struct callbacks *callbacks, unsigned cpu);

/*
 * Takes a free cell for the calling thread, which is about to dispatch events. The thread will
 * record in the cell which timer's callback it runs. `cpu` says which cell to try first. If all
 * cells are taken, waits until one is free.
 */
static inline struct callback *callbacks_enter(struct callbacks *callbacks, unsigned cpu)
{
	uint32_t index = cpu % CALLBACKS_MAX;

	return callback_claim(callbacks, index) ? &callbacks->cells[index]
	                                        : callbacks_enter_elsewhere(callbacks, cpu);
}

/*
 * Records that the calling thread tries to deliver this timer's event. A thread in
 * timerhub_cancel_sync() that finds this waits for the outcome.
 */
void callback_consider(struct callback *callback, uint64_t handle);

/*
 * Records that the calling thread has delivered the event of this timer, and is about to call the
 * timer's callback.
 */
void callback_begin(struct callback *callback, uint64_t handle);

/*
 * Wakes the threads that wait in timerhub_cancel_sync() for the calling thread's callback, which
 * has just returned.
 */
void callback_wake(struct callback *callback) __attribute__((cold));

/*
 * Records that the calling thread's callback has returned, and wakes the threads in
 * timerhub_cancel_sync() that wait for this.
 */
static inline void callback_end(struct callback *callback)
{
	/*
	 * Release: when callback_wait() finds this 0, its thread sees everything that the callback
	 * has written. [callback-end]
	 */
	if ((u64_exchange_release(&callback->now, 0) & NOW_WAITED) != 0)
		callback_wake(callback);
}

/* Gives up the calling thread's cell (struct callback), so that another thread can take it. */
static inline void callback_free(struct callback *callback)
{
	/*
	 * Release: when callback_wait() finds this 0, its thread sees everything that the callbacks
	 * have written. [callback-end]
	 */
	u64_store_release(&callback->now, 0);
	/*
	 * Release: from here on another thread may take the cell by callback_claim(), and then sees
	 * what this thread has stored. [callback-cell]
	 */
	u64_store_release(&callback->thread, 0);
}

/*
 * Does the work of callbacks_leave() after a callback has thrown an exception: records that this
 * callback has ended, wakes the threads that wait for its end, and gives up the struct callback.
 */
void callback_leave(struct callback *callback) __attribute__((cold));

/*
 * Gives the thread's struct callback free at the end of a dispatch. If the last callback was left
 * by an exception, first records that it has ended, because a timerhub_cancel_sync() may wait for
 * that.
 */
static inline void callbacks_leave(struct callback *callback)
{
	/*
	 * Relaxed is enough, because only this thread sets NOW_RUNNING. If it is still set,
	 * callback_end() was not called, because an exception has left the callback.
	 */
	if ((u64_load_relaxed(&callback->now) & NOW_RUNNING) != 0)
		callback_leave(callback);
	else
		callback_free(callback);
}

/* Tells whether the calling thread is inside the callback of the timer with this handle. */
bool callbacks_inside(const struct callbacks *callbacks, uint64_t handle);

/*
 * Waits until no other thread is about to deliver an event of this cancelled timer and, if
 * `running` is true, until none is inside its callback.
 */
void callbacks_wait(const struct callbacks *callbacks, uint64_t handle, bool running);

#endif
