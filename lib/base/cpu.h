/* SPDX-License-Identifier: MIT */
/*
 * Which CPU a thread happens to run on, and what that is to fetch ahead. Hints: correctness never
 * depends on them.
 *
 * The CPU is asked once or twice in every arm and cancel, so it is read where the kernel itself
 * leaves it whenever it moves a thread (restartable sequences, Linux 4.18), if the C library has
 * registered that place and tells where it is.
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

/* Ask the kernel; 0 where it does not say. */
unsigned cpu_ask(void);

/* The CPU that we run on now. Any thread, signal-safe. */
static inline unsigned cpu_current(void)
{
#if CPU_HAS_RSEQ
	const char *thread = __builtin_thread_pointer();
	const volatile struct rseq *rseq =
		(const volatile struct rseq *)(const volatile void *)(thread + __rseq_offset);
	int cpu = (int)rseq->cpu_id; /* the kernel writes it; negative: not registered */

	if (cpu >= 0)
		return (unsigned)cpu;
#endif
	return cpu_ask();
}

/*
 * For a function that only prefetches: gcc takes it for one without effect, and leaves calls to it
 * out, if it is not inlined first.
 */
#define CPU_FETCHES static inline __attribute__((always_inline))

/* How many CPUs the machine may have. For sizing at open. */
unsigned cpu_count(void);

#endif
