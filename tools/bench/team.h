/* SPDX-License-Identifier: MIT */
/* Several threads that start at once, dealt to the CPUs in turn. */
#ifndef BENCH_TEAM_H
#define BENCH_TEAM_H

#include <stdint.h>

#define TEAM_MAX 64

struct team_times {
	uint64_t start_ns; /* when they were let go */
	uint64_t cpu_ns;   /* of all members together */
};

/* To one of the CPUs that this process may use, dealt in turn. */
void team_pin(unsigned member);

/* Call body(member, context) on that many threads and wait until all have returned. */
struct team_times team_run(unsigned members, void (*body)(unsigned member, void *context),
                           void *context);

#endif
