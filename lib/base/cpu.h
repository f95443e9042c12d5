/* SPDX-License-Identifier: MIT */
/*
 * Returns the CPU of the calling thread, and prefetches memory. The CPU is a hint: correctness
 * never depends on it.
 *
 * Every arm and cancel reads the CPU once or twice. The kernel writes the CPU to the thread's area
 * for restartable sequences (Linux 4.18) when it moves the thread. If the C library has registered
 * the thread's area and exports its address, cpu_current() reads this area.
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

/* Ask the kernel for the CPU. Returns 0 if the call fails. */
unsigned cpu_ask(void);

/* Returns the CPU of the calling thread. Thread-safe and async-signal-safe. */
static inline unsigned cpu_current(void)
{
#if CPU_HAS_RSEQ
	const char *thread = __builtin_thread_pointer();
	const volatile struct rseq *rseq =
		(const volatile struct rseq *)(const volatile void *)(thread + __rseq_offset);
	/* number of the CPU, written by the kernel; negative: no number */
	int cpu = (int)rseq->cpu_id;

	if (cpu >= 0)
		return (unsigned)cpu;
#endif
	return cpu_ask();
}

/*
 * CPU_FETCHES marks a function that only prefetches. gcc sees no effect in such a function, and
 * removes each call that is not inlined. CPU_FETCHES therefore makes gcc inline every call.
 */
#define CPU_FETCHES static inline __attribute__((always_inline))

/*
 * Returns the number of parts into which to divide `count` things among the CPUs. The number is a
 * power of two, and at most `parts_max`. If there is more than one part, the parameter `least` is
 * the minimum number of things in a part.
 */
uint32_t cpu_parts(uint32_t count, uint32_t parts_max, uint32_t least);

#endif
