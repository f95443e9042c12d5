/* SPDX-License-Identifier: MIT */
/*
 * Measures how much faster the machine computes with several threads than with one thread. The
 * measured computation does not access memory.
 */
#ifndef BENCH_MACHINE_SPEEDUP_H
#define BENCH_MACHINE_SPEEDUP_H

struct machine {
	unsigned cpus, cores; /* numbers of CPUs and cores on which the team runs */
	double speed; /* ratio of the team's computing speed to the computing speed of one thread */
};

/* Measure the machine in its present state, with a team of `members` threads. */
struct machine machine_measure(unsigned members);

#endif
