/* SPDX-License-Identifier: MIT */
/* Threads that start together, pinned to the CPUs of the process in turn. */
#ifndef BENCH_THREAD_TEAM_H
#define BENCH_THREAD_TEAM_H

#include <stdint.h>

#define TEAM_MAX 64

struct team_times {
	uint64_t start_ns; /* start time of all members */
	uint64_t cpu_ns;   /* sum of the CPU times of all members */
};

/* the number of CPUs that this process may use */
unsigned cpus_count(void);

/* Returns the CPU to which a member of a team is assigned. */
unsigned team_cpu(unsigned member);

/* Pin the calling thread to the CPU of this member. */
void team_pin(unsigned member);

/* The number of members of other processes. This one's team is pinned to the CPUs after theirs. */
extern unsigned team_before;

/* Call body(member, context) on `members` threads and wait until all have returned. */
struct team_times team_run(unsigned members, void (*body)(unsigned member, void *context),
                           void *context);

#endif
