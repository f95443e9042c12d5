/* SPDX-License-Identifier: MIT */
/*
 * What the kernel tells of a thread in /proc, to whoever may read the process's /proc, and which
 * thread does what for the hubs and loops: what the cells of the boards say of it.
 */
#ifndef TOP_THREAD_H
#define TOP_THREAD_H

#include "function_names.h"
#include "target.h"

#define THREAD_TEXT_BYTES 32

struct thread {
	int tid; /* the number that the process itself sees */
	char name[THREAD_TEXT_BYTES];
	char state;         /* as in proc(5): R runs or waits for a CPU, S and D sleep, T stopped */
	bool has_waited_ns; /* false if the kernel does not keep waited_ns */
	uint64_t at_ns;     /* when the thread was looked at, by CLOCK_MONOTONIC */
	uint64_t ran_ns;    /* how long it has run on a CPU */
	uint64_t waited_ns; /* how long it has waited for a CPU, in waits that have ended */
	uint64_t sleeps;    /* how often it has gone to sleep of its own accord */
	char wchan[THREAD_TEXT_BYTES];   /* the kernel function in which it sleeps; "": not known */
	char syscall[THREAD_TEXT_BYTES]; /* the system call in which it sleeps; "": not known */
};

/*
 * Looks at the thread that its process calls `tid`. `proc` is the process's folder in /proc.
 * Returns false if there is no such thread, or if it may not be looked at.
 */
bool thread_look(int proc, int tid, struct thread *ret_thread);

/* largest number of threads that are shown */
#define RUNNING_MAX 512

struct running {
	uint64_t serial; /* of the hub or loop on whose board the cell stands */
	struct cell_reading cell;
	uint64_t queue;  /* address of the queue that it dispatches, or of its loop's; 0: none */
	uint64_t for_ns; /* since when the cell says so; 0 if the time is the program's own */
	struct name function; /* of the callback; the caller of runnings_take() stores it */
	struct thread thread; /* at this reading */
	struct thread before; /* at the reading before; tid 0: the thread was not looked at then */
};

struct runnings {
	unsigned count;
	struct running rows[RUNNING_MAX];
};

/*
 * Reads the cells of all boards. Threads that have ended are left out. `before` is the result of
 * the reading before, or NULL. The threads inside callbacks come first, the longest of them first.
 */
void runnings_take(struct runnings *ret_now, const struct runnings *before,
                   const struct target *target);

/*
 * Returns the row of the thread on which the events of the queue with this address wait, or that
 * turns this loop. One inside a callback comes first, then the one that was there last. NULL: no
 * thread is known.
 */
const struct running *running_at(const struct runnings *runnings, uint64_t address);

#endif
