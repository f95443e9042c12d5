/* SPDX-License-Identifier: MIT */
/* Threads that start together, pinned to the CPUs of the process in turn. */
#ifndef BENCH_THREAD_TEAM_H
#define BENCH_THREAD_TEAM_H

#include <stdint.h>

#define TEAM_MAX 64

struct team_times {
	uint64_t start_ns; /* when all members began */
	uint64_t cpu_ns;   /* sum of the CPU times of all members */
};

/* Returns the number of CPUs that this process may use. */
unsigned cpus_count(void);

/* Calls body(member, context) on `members` threads, and waits until all have returned. */
struct team_times team_run(unsigned members, void (*body)(unsigned member, void *context),
                           void *context);

#endif
