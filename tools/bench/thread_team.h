/* SPDX-License-Identifier: MIT */
/* Several threads that start together, assigned to the CPUs in turn. */
#ifndef BENCH_THREAD_TEAM_H
#define BENCH_THREAD_TEAM_H

#include <stdint.h>

#define TEAM_MAX 64

struct team_times {
	uint64_t start_ns; /* common start time */
	uint64_t cpu_ns;   /* sum over all members */
};

/* Returns the CPU of a member: one of the process's CPUs, in turn. */
unsigned team_cpu(unsigned member);

/* Pin the thread to that CPU. */
void team_pin(unsigned member);

/* Call body(member, context) on `members` threads and wait until all have returned. */
struct team_times team_run(unsigned members, void (*body)(unsigned member, void *context),
                           void *context);

#endif
