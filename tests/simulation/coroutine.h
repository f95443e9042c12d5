/* SPDX-License-Identifier: MIT */
/*
 * Coroutines are several stacks on one thread. A switch between two coroutines makes no system
 * call, while swapcontext() makes one. Coroutines exist for x86-64 and aarch64. Each switch between
 * coroutines is announced to AddressSanitizer.
 */
#ifndef SIMULATION_COROUTINE_H
#define SIMULATION_COROUTINE_H

#include <stddef.h>

struct coroutine {
	/* stack pointer at which the coroutine continues; invalid while it runs */
	void *stack_pointer;
	void *stack; /* lowest address of the coroutine's stack */
	size_t stack_bytes;
	void *fake_stack; /* AddressSanitizer's handle for the coroutine */
};

/* Prepare a coroutine that runs `entry` on this stack. The function `entry` must never return. */
void coroutine_init(struct coroutine *coroutine, void *stack, size_t stack_bytes,
                    void (*entry)(void));

/*
 * Prepare the coroutine that stands for the running thread. Call this function only once, because
 * it reads /proc, which is slow.
 */
void coroutine_init_thread(struct coroutine *coroutine);

/*
 * Switch from the running coroutine `from` to the coroutine `to`. Returns when another coroutine
 * switches back to `from`.
 */
void coroutine_switch(struct coroutine *from, struct coroutine *to);

/*
 * The function `entry` of each coroutine calls this function first. `self` is the running
 * coroutine.
 */
void coroutine_entered(struct coroutine *self);

#endif
