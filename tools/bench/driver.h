/* SPDX-License-Identifier: MIT */
/* Steps that workloads have in common: they open a subject, run threads, and wait. */
#ifndef BENCH_DRIVER_H
#define BENCH_DRIVER_H

#include "workload.h"

#define TEAM_MAX 64

/* Opens the run's subject, with a thread in run() if setup->cross is set. */
void driver_open(const struct run *run, const struct subject_setup *setup);

/* Arms, and waits while the subject is full. */
void driver_arm(uint32_t timer, uint64_t delay_ns);

/* With setup->cross, waits until one more timer has expired: all earlier calls are then applied. */
void driver_settle(void);

/* Returns the number of CPUs that this process may use. */
unsigned cpus_count(void);

/*
 * Calls body(member) on so many threads, which begin together, and waits until all have returned.
 * Returns the time at which they began.
 */
uint64_t team_run(unsigned members, void (*body)(unsigned member));

#endif
