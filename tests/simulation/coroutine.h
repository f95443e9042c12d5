/* SPDX-License-Identifier: MIT */
/*
 * Coroutines: several stacks on one thread, and a switch between them that makes no system call
 * (swapcontext makes one). The coroutines exist for x86-64 and aarch64. AddressSanitizer is
 * informed of every switch.
 */
#ifndef SIMULATION_COROUTINE_H
#define SIMULATION_COROUTINE_H

#include <stddef.h>

struct coroutine {
	void *stack_pointer; /* stack pointer at which it continues; invalid while it runs */
	void *stack;         /* lowest address of the stack; NULL: the thread's own stack */
	size_t stack_bytes;
	void *fake_stack; /* handle of AddressSanitizer */
};

/* Prepare a coroutine on this stack that begins with `entry`, which must never return. */
void coroutine_init(struct coroutine *coroutine, void *stack, size_t stack_bytes,
                    void (*entry)(void));

/*
 * Prepare the coroutine that stands for the running thread. Call it once, because it reads /proc.
 */
void coroutine_init_thread(struct coroutine *coroutine);

/* Continue `to`; returns when another coroutine switches back. `from` is the running coroutine. */
void coroutine_switch(struct coroutine *from, struct coroutine *to);

/* A coroutine calls this function first in `entry`. `self` is the running coroutine. */
void coroutine_entered(struct coroutine *self);

#endif
