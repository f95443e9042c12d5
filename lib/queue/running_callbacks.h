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

/* In this cell a dispatching thread says which timer's callback it runs. */
struct callback {
	/* The handle of the timer that is being delivered or called, and two flags. 0: none. */
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

/* Takes the cell at this index for the calling thread. Returns false if it is taken. */
static inline bool callback_claim(struct callbacks *callbacks, uint32_t index)
{
	struct callback *callback = &callbacks->cells[index];
	uint64_t none = 0;

	/* [callback-cell] pairs with callback_free(). The relaxed load only avoids a vain CAS. */
	if (u64_load_relaxed(&callback->thread) != 0 ||
	    !u64_cas_acquire(&callback->thread, &none, thread_self()))
		return false;
	/*
	 * Cancellers search the cells below `end`, so raise it before the first event is delivered.
	 */
	u64_raise(&callbacks->end, index + 1);
	return true;
}

/*
 * Does the rest of callbacks_enter() if the first cell is taken: tries all others, until one is
 * free.
 */
struct callback *callbacks_enter_elsewhere(struct callbacks *callbacks, unsigned cpu);

/* Takes a free cell for a thread that dispatches, near `cpu`. Waits while all are taken. */
static inline struct callback *callbacks_enter(struct callbacks *callbacks, unsigned cpu)
{
	uint32_t index = cpu % CALLBACKS_MAX;

	return callback_claim(callbacks, index) ? &callbacks->cells[index]
	                                        : callbacks_enter_elsewhere(callbacks, cpu);
}

/* Records that the thread tries to deliver this timer's event. Cancellers wait for the outcome. */
void callback_consider(struct callback *callback, uint64_t handle);

/* Records that the thread has delivered this timer's event, and will call the callback. */
void callback_begin(struct callback *callback, uint64_t handle);

/* Wakes the cancellers that wait for this thread's callback, which has just returned. */
void callback_wake(struct callback *callback) __attribute__((cold));

/* Records that this thread's callback has returned, and wakes the cancellers that wait. */
static inline void callback_end(struct callback *callback)
{
	/*
	 * [callback-end] pairs with callback_wait(), which then sees all that the callback has
	 * written.
	 */
	if ((u64_exchange_release(&callback->now, 0) & NOW_WAITED) != 0)
		callback_wake(callback);
}

/* Gives up the calling thread's cell (struct callback), so that another thread can take it. */
static inline void callback_free(struct callback *callback)
{
	/*
	 * [callback-end] pairs with callback_wait(), after which the callback's data may be freed.
	 */
	u64_store_release(&callback->now, 0);
	/*
	 * [callback-cell] pairs with callback_claim(): from here on another thread may write the
	 * cell.
	 */
	u64_store_release(&callback->thread, 0);
}

/* Does the work of callbacks_leave() if an exception has left the last callback. */
void callback_leave(struct callback *callback) __attribute__((cold));

/* Gives up the calling thread's cell after a dispatch, even if an exception has left a callback. */
static inline void callbacks_leave(struct callback *callback)
{
	/* Relaxed: only this thread sets NOW_RUNNING. After an exception, it is still set. */
	if ((u64_load_relaxed(&callback->now) & NOW_RUNNING) != 0)
		callback_leave(callback);
	else
		callback_free(callback);
}

/* Tells whether the calling thread is inside the callback of the timer with this handle. */
bool callbacks_inside(const struct callbacks *callbacks, uint64_t handle);

/*
 * Waits until no thread delivers the event of this cancelled timer. With `running`, waits for its
 * callback too.
 */
void callbacks_wait(const struct callbacks *callbacks, uint64_t handle, bool running);

#endif
