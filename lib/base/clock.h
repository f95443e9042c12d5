/* SPDX-License-Identifier: MIT */
/* A hub's clock, the kernel's or a manual one. Thread-safe. */
#ifndef TIMERHUB_CLOCK_H
#define TIMERHUB_CLOCK_H

#include "base/atomic.h"

struct clock {
	bool manual;          /* true: only clock_set() moves the clock; fixed at open */
	bool goes_back;       /* true: the clock may go back; fixed at open */
	int id;               /* kernel's clockid_t; fixed at open */
	atomic_u64 manual_ns; /* time of a manual clock, written by the thread that moves it */
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
