/* SPDX-License-Identifier: MIT */
/*
 * The callbacks that run now: which thread is inside which timer's, so that others can wait for its
 * end. A dispatching thread has a cell of its own and pays two stores and one exchange on it for
 * each event; who waits does all the searching.
 */
#ifndef TIMERHUB_CALLBACK_H
#define TIMERHUB_CALLBACK_H

#include "memory.h"
#include "timer.h"

struct callback {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 now; /* handle << 2 | flags, or 0; the thread, and
	                                              who waits: a flag */
	atomic_ptr thread;                         /* whose cell it is; NULL: nobody's */
	atomic_u32 ended; /* futex: callbacks that ended while somebody waited; the thread */
};

struct callbacks {
	struct callback *cells; /* a table, committed as touched */
	struct memory memory;   /* holds the cells */
	atomic_u32 end;         /* no cell was ever used at this index or above */
};

/* 0, or -ENOMEM. */
int callbacks_open(struct callbacks *callbacks);
void callbacks_close(struct callbacks *callbacks);

/* A thread is about to dispatch: its cell. `cpu`, where it runs, is a hint. */
struct callback *callbacks_enter(struct callbacks *callbacks, unsigned cpu);
void callbacks_leave(struct callback *callback);

/* Before the CAS that delivers the handle, or its slot's later life, to this thread. */
void callback_consider(struct callback *callback, uint64_t handle);

/* It was this handle that was delivered: its callback is about to be called. */
void callback_begin(struct callback *callback, uint64_t handle);

/* The callback has returned. */
void callback_end(struct callback *callback);

/* Is the calling thread inside this timer's callback? */
bool callbacks_inside(const struct callbacks *callbacks, uint64_t handle);

/*
 * Wait, if `running`, until no other thread runs this timer's callback; no new one may begin. Wait
 * in any case for threads that are about to deliver something of the timer's slot, since that may
 * turn out to be this timer; true if there was one.
 */
bool callbacks_wait(const struct callbacks *callbacks, uint64_t handle, bool running);

#endif
