/* SPDX-License-Identifier: MIT */
/*
 * Timers whose lateness is recorded. The requested deadline is the clock, read just before the
 * subject caches its own, plus the delay. Lateness is the clock in the callback minus that
 * deadline. A negative lateness is early.
 */
#ifndef BENCH_LATENESS_TIMERS_H
#define BENCH_LATENESS_TIMERS_H

#include "bench.h"

/* Arm `count` timers from the number `first`, with random delays in [from, to). Call it once. */
void late_arm(const struct subject *subject, uint32_t first, uint32_t count, uint64_t from_ns,
              uint64_t to_ns, uint64_t seed);

/* The workload's callback. Other timers have no effect. */
void late_record(uint32_t timer);

/* Returns the number of recorded timers. Any thread. */
uint32_t late_count(void);

/* Add the percentiles, the number of early timers, and the largest lateness and earliness. */
void late_add(struct result *result, const double *percents);

#endif
