/* SPDX-License-Identifier: MIT */
/*
 * On which CPU the calling thread runs. That is a hint, and nothing that must be correct depends on
 * it. Every arm and cancel asks once or twice, so it must be cheap: it is read from the thread's
 * area for restartable sequences (Linux 4.18), which the kernel keeps up to date, if the C library
 * exports it.
 */
#ifndef TIMERHUB_CPU_H
#define TIMERHUB_CPU_H

#include <stdint.h>

#if defined(__GLIBC__) && !defined(CPU_HAS_RSEQ)
#if __GLIBC_PREREQ(2, 35)
#include <sys/rseq.h>
#define CPU_HAS_RSEQ 1
#endif
#endif

/* Asks the kernel. Returns 0 if it does not answer. */
unsigned cpu_ask(void);

/* Returns the CPU of the calling thread. It can be called in a signal handler. */
static inline unsigned cpu_current(void)
{
#if CPU_HAS_RSEQ
	const char *thread = __builtin_thread_pointer();
	const volatile struct rseq *rseq =
		(const volatile struct rseq *)(const volatile void *)(thread + __rseq_offset);
	/* The kernel writes it. It is negative if the thread has no such area. */
	int cpu = (int)rseq->cpu_id;

	if (cpu >= 0)
		return (unsigned)cpu;
#endif
	return cpu_ask();
}

/*
 * Begins a function that only prefetches. It must be inlined, because gcc sees no effect of such a
 * function, and removes each call that is not.
 */
#define CPU_FETCHES static inline __attribute__((always_inline))

/*
 * Returns into how many parts to divide `count` things, so that CPUs stay apart: a power of two,
 * about as many as there are CPUs, at most `parts_max`. If it is more than one, each has at least
 * `least`.
 */
uint32_t cpu_parts(uint32_t count, uint32_t parts_max, uint32_t least);

#endif
