/* SPDX-License-Identifier: MIT */
/*
 * The callbacks that run now: which thread is inside which timer's callback, so that a canceller
 * can wait for its end. A dispatching thread has a cell of its own and pays two stores and one
 * exchange on it for each event; the canceller does all the searching.
 */
#ifndef TIMERHUB_CALLBACK_H
#define TIMERHUB_CALLBACK_H

#include "base/memory.h"
#include "timer/timer.h"

struct callback {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 now; /* handle << 2 | flags, or 0; the thread, and
	                                              a canceller: a flag */
	atomic_ptr thread;                         /* whose cell it is; NULL: free */
	atomic_u32 ended; /* futex: callbacks that ended and were waited for; the thread */
};

struct callbacks {
	struct callback *cells; /* a table, committed as touched */
	struct memory memory;   /* holds the cells */
	atomic_u32 end;         /* no cell was ever used at this index or above */
};

/* Returns 0, or -ENOMEM. */
int callbacks_open(struct callbacks *callbacks);
void callbacks_close(struct callbacks *callbacks);

/* Returns a cell for the calling thread, which is about to dispatch. `cpu` is a hint. */
struct callback *callbacks_enter(struct callbacks *callbacks, unsigned cpu);
void callbacks_leave(struct callback *callback);

/* Publish the handle, before the CAS that delivers it. */
void callback_consider(struct callback *callback, uint64_t handle);

/* This handle was delivered: its callback is about to be called. */
void callback_begin(struct callback *callback, uint64_t handle);

/* The callback has returned. */
void callback_end(struct callback *callback);

/* Returns whether the calling thread is inside this timer's callback. */
bool callbacks_inside(const struct callbacks *callbacks, uint64_t handle);

/*
 * Wait for threads that are about to deliver the timer. If `running`, wait until no other thread
 * runs the timer's callback; the caller has made sure that none begins.
 */
void callbacks_wait(const struct callbacks *callbacks, uint64_t handle, bool running);

#endif
