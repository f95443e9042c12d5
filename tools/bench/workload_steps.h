/* SPDX-License-Identifier: MIT */
/*
 * Common steps of workloads: open a subject (a measured service), run its consumer, wait until all
 * calls are applied.
 */
#ifndef BENCH_WORKLOAD_STEPS_H
#define BENCH_WORKLOAD_STEPS_H

#include "workload.h"

/*
 * Open the run's subject. Returns the subject that the workload must call. If calls go through the
 * mailbox, driver_open() returns the mailbox's subject instead of the run's subject. `on_expiry`
 * may be NULL. If setup->cross is set, start the thread that calls run().
 */
const struct subject *driver_open(const struct run *run, const struct subject_setup *setup,
                                  void (*on_expiry)(uint32_t timer));

/* Arm, and wait while the subject is full. Returns how often it has refused. */
uint64_t driver_arm(const struct subject *subject, uint32_t timer, uint64_t delay_ns);

/* Wait until one more timer has expired: the subject has then applied all earlier calls. */
void driver_settle(void);

/* Returns the number of delivered timers. Any thread may call this function. */
uint64_t driver_delivered(void);

/*
 * Deliver expiries on this thread until driver_delivered() returns `deliveries` or more.
 * setup->cross must not be set.
 */
void driver_await(uint64_t deliveries);

/* Returns the subject's counts, or zeros if the subject counts nothing. */
struct subject_counts driver_counts(void);

/* Call `body`, inside the subject's loop if this thread owns it and the subject has within(). */
void driver_within(void (*body)(void *), void *context);

/*
 * Arm the timers 0 to timers - 1, in order, with random delays in [from_ns, to_ns). If from_ns and
 * to_ns are equal, all delays are from_ns.
 */
void driver_arm_all(uint32_t timers, uint64_t from_ns, uint64_t to_ns, uint64_t seed);

#endif
