/* SPDX-License-Identifier: MIT */
/*
 * The calling thread's CPU, a hint on which nothing correct depends, and prefetches. Every arm and
 * cancel asks once or twice: read from the thread's area for restartable sequences (Linux 4.18),
 * which the kernel keeps right, if the C library exports it.
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

/* From the kernel; 0 if that fails. */
unsigned cpu_ask(void);

/* Thread-safe and async-signal-safe. */
static inline unsigned cpu_current(void)
{
#if CPU_HAS_RSEQ
	const char *thread = __builtin_thread_pointer();
	const volatile struct rseq *rseq =
		(const volatile struct rseq *)(const volatile void *)(thread + __rseq_offset);
	/* by the kernel; negative: none */
	int cpu = (int)rseq->cpu_id;

	if (cpu >= 0)
		return (unsigned)cpu;
#endif
	return cpu_ask();
}

/*
 * For a function that only prefetches: gcc sees no effect and removes each call that is not
 * inlined.
 */
#define CPU_FETCHES static inline __attribute__((always_inline))

/*
 * Into how many parts to divide `count` things: a power of two, at most `parts_max`, with at least
 * `least` in each unless it is one.
 */
uint32_t cpu_parts(uint32_t count, uint32_t parts_max, uint32_t least);

#endif
