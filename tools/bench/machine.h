/* SPDX-License-Identifier: MIT */
/* Measures how much of the gain of several threads is due to the machine. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

struct machine {
	unsigned cpus, cores; /* numbers that the team uses; a core may have several CPUs */
	double speed;         /* of the team, divided by one thread's; without memory */
};

/* Measure the machine in its present state, with a team of `members` threads. */
struct machine machine_measure(unsigned members);

#endif
