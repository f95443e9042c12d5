/* SPDX-License-Identifier: MIT */
/*
 * Which thread does what for the hubs and loops of a process: what the cells of the boards say, and
 * what the kernel says of the same threads.
 */
#ifndef TOP_RUNNING_H
#define TOP_RUNNING_H

#include "target.h"
#include "thread.h"

/* largest number of threads that are shown */
#define RUNNING_MAX 512

struct running {
	uint64_t serial; /* of the hub or loop on whose board the cell stands */
	struct cell_reading cell;
	uint64_t queue;  /* address of the queue that it dispatches, or of its loop's; 0: none */
	uint64_t for_ns; /* since when the cell says so; 0 if the time is the program's own */
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
 * Returns the row of the thread on which the events of a queue wait, or that turns a loop. One
 * inside a callback comes first, then the one that was there last. NULL: no thread is known.
 */
const struct running *runnings_of_queue(const struct runnings *runnings, uint64_t serial,
                                        uint64_t queue);
const struct running *runnings_of_loop(const struct runnings *runnings, uint64_t loop);

#endif
