/* SPDX-License-Identifier: MIT */
/*
 * What workloads do to a subject beyond its own calls: open it for one thread or for many, run its
 * consumer, and wait until it has applied all that it was told.
 */
#ifndef BENCH_DRIVER_H
#define BENCH_DRIVER_H

#include "bench.h"

/*
 * Open the run's subject; returns the one to call, which is another if the calls have to go through
 * the mailbox. `on_expiry` may be NULL. With setup->cross this starts the thread in run().
 */
const struct subject *driver_open(const struct run *run, const struct subject_setup *setup,
                                  void (*on_expiry)(uint32_t timer));

/* Wait until everything told to the subject before is applied: arm one more, and await it. */
void driver_settle(void);

/* Deliver on this thread until done(); only without setup->cross. */
void driver_run(bool (*done)(void));

/* Call body: inside the subject's loop if it wants that and this thread owns the loop. */
void driver_within(void (*body)(void *), void *context);

/* Arm all timers with delays in [from, to), in order, `from` if they are equal. */
void driver_arm_all(uint32_t timers, uint64_t from_ns, uint64_t to_ns, uint64_t seed);

#endif
