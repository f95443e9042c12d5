/* SPDX-License-Identifier: MIT */
/*
 * Several stacks on one thread, on x86-64 and aarch64. The thread switches between them without the
 * system call that swapcontext() makes. AddressSanitizer is told of each switch.
 */
#ifndef SIMULATION_COROUTINE_H
#define SIMULATION_COROUTINE_H

#include <stddef.h>

struct coroutine {
	/* where it continues; invalid while it runs */
	void *stack_pointer;
	void *stack; /* lowest address of the coroutine's stack */
	size_t stack_bytes;
	void *fake_stack; /* AddressSanitizer's handle for the coroutine */
};

/* `entry` must never return. */
void coroutine_init(struct coroutine *coroutine, void *stack, size_t stack_bytes,
                    void (*entry)(void));

/* For the running thread, once: it reads /proc, which is slow. */
void coroutine_init_thread(struct coroutine *coroutine);

/* Continues the coroutine `to`. Returns when some coroutine switches back to `from`. */
void coroutine_switch(struct coroutine *from, struct coroutine *to);

/* The first call of each `entry`. */
void coroutine_entered(struct coroutine *self);

#endif
