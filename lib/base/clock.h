/* SPDX-License-Identifier: MIT */
/*
 * The kernel's or a manual one; thread-safe. Of its fields only manual_ns changes after the open.
 */
#ifndef TIMERHUB_CLOCK_H
#define TIMERHUB_CLOCK_H

#include "base/atomic.h"

struct clock {
	bool manual;          /* only clock_set() moves it */
	bool goes_back;       /* it is the wall clock */
	int id;               /* kernel's clockid_t */
	atomic_u64 manual_ns; /* by the thread that moves it */
};

uint64_t clock_monotonic_ns(void);

/* `kind`, an enum timerhub_clock, counts only if it is not manual. */
void clock_init(struct clock *clock, uint32_t kind, bool manual);

uint64_t clock_now_ns(const struct clock *clock);

/* Can a suspend or a set wall clock make a relative sleep miss a time? */
bool clock_needs_deadline_fd(const struct clock *clock);

/* A manual clock, by one thread at a time. False: it would go back. */
bool clock_set(struct clock *clock, uint64_t now_ns);

#endif
