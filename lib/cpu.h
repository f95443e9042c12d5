/* SPDX-License-Identifier: MIT */
/* Which CPU a thread happens to run on. A hint: correctness never depends on it. */
#ifndef TIMERHUB_CPU_H
#define TIMERHUB_CPU_H

/* The CPU that we run on now; 0 where the kernel does not say. Any thread, signal-safe. */
unsigned cpu_current(void);

/* How many CPUs the machine may have. For sizing at open. */
unsigned cpu_count(void);

#endif
