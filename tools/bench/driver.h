/* SPDX-License-Identifier: MIT */
/* Steps that workloads have in common. */
#ifndef BENCH_DRIVER_H
#define BENCH_DRIVER_H

#include "workload.h"

/*
 * Opens the run's subject, with a thread in run() if setup->cross is set. `on_expiry` is called for
 * each expiry, unless it is NULL.
 */
void driver_open(const struct run *run, const struct subject_setup *setup,
                 void (*on_expiry)(uint32_t timer));

/* Arms, and waits while the subject is full. */
void driver_arm(uint32_t timer, uint64_t delay_ns);

/* Arms all timers of the setup, in order, with random delays in [from_ns, to_ns). */
void driver_arm_all(uint64_t from_ns, uint64_t to_ns, uint64_t seed);

/* Waits until one more timer has expired: the subject has then applied all earlier calls. */
void driver_settle(void);

/* Delivers on this thread until so many timers have expired. setup->cross must not be set. */
void driver_await(uint64_t deliveries);

/* Calls `body`, inside the subject's loop if it has within() and this thread owns it. */
void driver_within(void (*body)(void *), void *context);

#endif
