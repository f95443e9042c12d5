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

/* Returns the CPU of the calling thread, as a hint. Signal handlers may call it. */
static inline unsigned cpu_current(void)
{
#if CPU_HAS_RSEQ
	const char *thread = __builtin_thread_pointer();
	const volatile struct rseq *rseq =
		(const volatile struct rseq *)(const volatile void *)(thread + __rseq_offset);
	/* cpu_id is negative if the kernel does not keep it up to date. */
	int cpu = (int)rseq->cpu_id;

	if (cpu >= 0)
		return (unsigned)cpu;
#endif
	return cpu_ask();
}

/* For functions that only prefetch, which gcc would remove if they were not inlined. */
#define CPU_FETCHES static inline __attribute__((always_inline))

/* Returns the number of parts in which CPUs rarely meet. A part has at least `least` things. */
uint32_t cpu_parts(uint32_t count, uint32_t parts_max, uint32_t least);

#endif
