/* SPDX-License-Identifier: MIT */
/*
 * Common steps of workloads: open a subject for one or several threads, run its consumer, and wait
 * until it has applied all calls.
 */
#ifndef BENCH_DRIVER_H
#define BENCH_DRIVER_H

#include "bench.h"

/*
 * Open the run's subject. Returns the subject to call, which is another one if calls go through the
 * mailbox. `on_expiry` may be NULL. With setup->cross this starts the thread in run().
 */
const struct subject *driver_open(const struct run *run, const struct subject_setup *setup,
                                  void (*on_expiry)(uint32_t timer));

/* Wait until the subject has applied all earlier calls: arm one more timer, and wait for it. */
void driver_settle(void);

/* Deliver on this thread until done(); only without setup->cross. */
void driver_run(bool (*done)(void));

/*
 * Call `body`, inside the subject's loop if the subject needs that and this thread owns the loop.
 */
void driver_within(void (*body)(void *), void *context);

/* Arm all timers with delays in [from, to), in order; with `from` if both are equal. */
void driver_arm_all(uint32_t timers, uint64_t from_ns, uint64_t to_ns, uint64_t seed);

#endif
