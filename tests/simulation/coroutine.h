/* SPDX-License-Identifier: MIT */
/*
 * Coroutines: several stacks on one thread, and a switch between them that makes no system call
 * (swapcontext makes one). For x86-64 and aarch64; AddressSanitizer is told of every switch.
 */
#ifndef SIMULATION_COROUTINE_H
#define SIMULATION_COROUTINE_H

#include <stddef.h>

struct coroutine {
	void *stack_pointer; /* where it goes on; of the one that runs, stale */
	void *stack;         /* its lowest address; NULL: the thread's own stack */
	size_t stack_bytes;
	void *fake_stack; /* AddressSanitizer's */
};

/* Prepare one that begins with `entry`, which must never return, on this stack. */
void coroutine_init(struct coroutine *coroutine, void *stack, size_t stack_bytes,
                    void (*entry)(void));

/* Prepare the one that stands for the thread as it is. Once is enough: it costs a look at /proc. */
void coroutine_init_thread(struct coroutine *coroutine);

/* Let `to` go on; returns when somebody switches back. `from` is the one that runs. */
void coroutine_switch(struct coroutine *from, struct coroutine *to);

/* To be called first thing by `entry`. `self` is the one that runs now. */
void coroutine_entered(struct coroutine *self);

#endif
