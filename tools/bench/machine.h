/* SPDX-License-Identifier: MIT */
/* The machine's part in the gain of several threads. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

struct machine {
	unsigned cpus, cores; /* of a team; threads of a core are several CPUs */
	double speed;         /* of the team in computations without memory, against one member's */
};

/* Measure the machine, as it is now, for a team of that size. */
struct machine machine_measure(unsigned members);

#endif
