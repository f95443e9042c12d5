/* SPDX-License-Identifier: MIT */
/*
 * Timers whose lateness is recorded. This file reads the clock just before the measured service
 * caches the clock. The requested deadline is this time plus the delay. The lateness is the time in
 * the callback minus the requested deadline. If the lateness is negative, the timer was early.
 */
#ifndef BENCH_LATENESS_TIMERS_H
#define BENCH_LATENESS_TIMERS_H

#include "workload.h"

/*
 * Arm `count` timers with random delays in [from_ns, to_ns). The parameter `first` is the number of
 * the first timer. Call this function once.
 */
void late_arm(const struct subject *subject, uint32_t first, uint32_t count, uint64_t from_ns,
              uint64_t to_ns, uint64_t seed);

/*
 * Record the lateness of an expired timer. Use this function as the workload's callback. Timers
 * that late_arm() did not arm are ignored.
 */
void late_record(uint32_t timer);

/* Returns the number of recorded timers. Any thread may call this function. */
uint32_t late_count(void);

/*
 * Add to the result the percentiles of the lateness, the number of early timers, and the largest
 * lateness and earliness.
 */
void late_add(struct result *result, const double *percents);

#endif
