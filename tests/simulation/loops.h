/* SPDX-License-Identifier: MIT */
/*
 * The event loops of a run. Workers take turns in using a loop: each adopts it, sets timeouts, and
 * then turns, settles and blocks as timerhub_loop_settle(3) tells a program to.
 */
#ifndef SIMULATION_LOOPS_H
#define SIMULATION_LOOPS_H

#include "simulated_run.h"

/* Open the loops of this run, if it has any: after the hub's queues, before the workers. */
void loops_open(void);
void loops_close(void);

/* Let the worker use a loop for a while. */
void operation_loop(struct worker *worker);
/* The worker runs a callback of its loop's queue, or of no loop. */
void loops_in_callback(struct worker *worker);

/* Returns whether a worker is inside a call that may change the hub. */
bool loops_are_calling(void);
/* When no actor can run: no loop may sleep past a deadline. */
void loops_quiet(void);
void loops_clock_set(uint64_t before_ns);
/* In a forked child, whose only thread is that of the worker. */
void loops_check_child(struct worker *worker);

#endif
