/* SPDX-License-Identifier: MIT */
/* Steps that workloads have in common: they open a subject, run threads, and wait. */
#ifndef BENCH_DRIVER_H
#define BENCH_DRIVER_H

#include "workload.h"

#define TEAM_MAX 64

/*
 * Opens the timer service that `run` measures. If setup->cross is set, a thread of its own runs the
 * service.
 */
void driver_open(const struct run *run, const struct subject_setup *setup);

/* Arms a timer. If the service is full, waits until it has room. */
void driver_arm(uint32_t timer, uint64_t delay_ns);

/*
 * If setup->cross is set, waits until one more timer has expired, because the service has then
 * applied all earlier calls.
 */
void driver_settle(void);

/* Returns the number of CPUs that this process may use. */
unsigned cpus_count(void);

/*
 * Calls body(member) on `members` threads, which begin together, and waits until all have returned.
 * Returns the time at which they began.
 */
uint64_t team_run(unsigned members, void (*body)(unsigned member));

#endif
