/* SPDX-License-Identifier: MIT */
/* See cpu.h. Of the core, only this file and owner_thread.c include sched.h. */
#define _GNU_SOURCE
#include "base/cpu.h"

#include <sched.h>
#include <unistd.h>

unsigned cpu_ask(void)
{
	int cpu = sched_getcpu();

	return cpu < 0 ? 0 : (unsigned)cpu;
}

unsigned cpu_count(void)
{
	long count = sysconf(_SC_NPROCESSORS_CONF);

	return count < 1 ? 1 : (unsigned)count;
}
