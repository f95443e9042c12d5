/* SPDX-License-Identifier: MIT */
/*
 * Common steps of workloads: open a subject for one or several threads, run its consumer, and wait
 * until it has applied all calls.
 */
#ifndef BENCH_WORKLOAD_STEPS_H
#define BENCH_WORKLOAD_STEPS_H

#include "bench.h"

/*
 * Open the run's subject. Returns the subject to call. If calls go through the mailbox, this is the
 * mailbox's subject. `on_expiry` may be NULL. With setup->cross this starts the thread in run().
 */
const struct subject *driver_open(const struct run *run, const struct subject_setup *setup,
                                  void (*on_expiry)(uint32_t timer));

/* Arm one more timer and wait for it, so that the subject has applied all earlier calls. */
void driver_settle(void);

/* Returns the number of timers delivered until now. Any thread. */
uint64_t driver_delivered(void);

/* Deliver on this thread until there were as many deliveries. Only without setup->cross. */
void driver_await(uint64_t deliveries);

/* Returns the subject's counts, or zeros if it counts nothing. */
struct subject_counts driver_counts(void);

/*
 * Call `body`, inside the subject's loop if the subject needs that and this thread owns the loop.
 */
void driver_within(void (*body)(void *), void *context);

/*
 * Arm all timers, in order, with random delays in [from, to). If both are equal, all delays are
 * `from`.
 */
void driver_arm_all(uint32_t timers, uint64_t from_ns, uint64_t to_ns, uint64_t seed);

#endif
