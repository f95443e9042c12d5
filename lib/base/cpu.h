/* SPDX-License-Identifier: MIT */
/*
 * On which CPU does the calling thread run? The answer is only a hint, because the thread can move
 * at any time. Every arm and cancel asks once or twice, so it must be cheap: it is read from the
 * thread's area for restartable sequences (Linux 4.18), which the kernel keeps up to date, if the C
 * library exports it.
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

/* Asks the kernel on which CPU the calling thread runs. Returns 0 if there is no answer. */
unsigned cpu_ask(void);

/*
 * Returns the CPU on which the calling thread runs, as a hint. It can be called in a signal
 * handler.
 */
static inline unsigned cpu_current(void)
{
#if CPU_HAS_RSEQ
	const char *thread = __builtin_thread_pointer();
	const volatile struct rseq *rseq =
		(const volatile struct rseq *)(const volatile void *)(thread + __rseq_offset);
	/*
	 * The kernel writes cpu_id. It is negative if this thread has no area for restartable
	 * sequences.
	 */
	int cpu = (int)rseq->cpu_id;

	if (cpu >= 0)
		return (unsigned)cpu;
#endif
	return cpu_ask();
}

/*
 * The storage class of a function that only prefetches memory. It must be inlined, because gcc sees
 * no effect in such a function and removes calls that are not inlined.
 */
#define CPU_FETCHES static inline __attribute__((always_inline))

/*
 * A list of `count` elements is to be split, so that CPUs rarely share a list. Returns how many
 * lists to make: as many as CPUs, rounded up to a power of two, but at most `parts_max`, and fewer
 * if a list would be shorter than `least`.
 */
uint32_t cpu_parts(uint32_t count, uint32_t parts_max, uint32_t least);

#endif
