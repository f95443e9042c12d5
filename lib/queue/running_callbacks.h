/* SPDX-License-Identifier: MIT */
/*
 * Which thread runs which timer's callback, so that a canceller can wait for its end. Each
 * dispatching thread has a cell: two stores and an exchange for each event. Only cancellers search.
 */
#ifndef TIMERHUB_RUNNING_CALLBACKS_H
#define TIMERHUB_RUNNING_CALLBACKS_H

#include "base/memory.h"
#include "timer/timer.h"

struct callback {
	/* handle << 2 | flags, or 0, by the cell's thread; a canceller sets NOW_WAITED */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 now;
	atomic_u64 thread; /* thread_self() of the thread that has the cell; 0: it is free */
	atomic_u32 ended;  /* futex: ended callbacks with a waiting canceller */
};

struct callbacks {
	struct callback *cells;
	struct memory memory;
	atomic_u64 end; /* cells from here on were never used */
};

int callbacks_open(struct callbacks *callbacks);
void callbacks_close(struct callbacks *callbacks);

/* For the calling thread, about to dispatch; `cpu` is a hint. */
struct callback *callbacks_enter(struct callbacks *callbacks, unsigned cpu);
void callbacks_leave(struct callback *callback);

/* Before the CAS that delivers it. */
void callback_consider(struct callback *callback, uint64_t handle);

/* After the delivery, before the callback. */
void callback_begin(struct callback *callback, uint64_t handle);

void callback_end(struct callback *callback);

/* Is this thread inside this timer's callback? */
bool callbacks_inside(const struct callbacks *callbacks, uint64_t handle);

/*
 * Until no other thread is about to deliver the timer or, if `running`, runs its callback. No
 * further one may begin.
 */
void callbacks_wait(const struct callbacks *callbacks, uint64_t handle, bool running);

#endif
