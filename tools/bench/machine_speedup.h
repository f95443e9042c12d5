/* SPDX-License-Identifier: MIT */
/* Measures how much of the gain of several threads is due to the machine. */
#ifndef BENCH_MACHINE_SPEEDUP_H
#define BENCH_MACHINE_SPEEDUP_H

struct machine {
	unsigned cpus, cores; /* numbers of CPUs and cores on which the team runs */
	double speed; /* team speed divided by the speed of one thread, without memory accesses */
};

/* Measure the machine in its present state, with a team of `members` threads. */
struct machine machine_measure(unsigned members);

#endif
