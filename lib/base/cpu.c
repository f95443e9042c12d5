/* SPDX-License-Identifier: MIT */
/*
 * The slow ways to ask about CPUs: sched_getcpu(3), where the thread's area for restartable
 * sequences has no answer, and sysconf(3). cpu.h has the fast one.
 */
#define _GNU_SOURCE
#include "base/cpu.h"

#include <sched.h>
#include <unistd.h>

#include "base/bits.h"

unsigned cpu_ask(void)
{
	int cpu = sched_getcpu();

	return cpu < 0 ? 0 : (unsigned)cpu;
}

uint32_t cpu_parts(uint32_t count, uint32_t parts_max, uint32_t least)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	uint64_t parts = u64_min(bits_power_of_two(cpus < 1 ? 1 : (uint64_t)cpus), parts_max);

	while (parts > 1 && count / parts < least)
		parts /= 2;
	return (uint32_t)parts;
}
