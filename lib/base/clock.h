/* SPDX-License-Identifier: MIT */
/*
 * The clock of a hub or a loop, which is one of the kernel's, or a manual one that the program
 * moves. Any thread can read it. Only manual_ns changes after it was opened.
 */
#ifndef TIMERHUB_CLOCK_H
#define TIMERHUB_CLOCK_H

#include "base/atomic.h"

struct clock {
	bool manual;          /* whether only clock_set() moves it */
	bool goes_back;       /* whether it is the wall clock, the only one that can go back */
	int id;               /* the kernel's clockid_t */
	atomic_u64 manual_ns; /* a manual clock's time, written by the thread that moves it */
};

/* Reads CLOCK_MONOTONIC. */
uint64_t clock_monotonic_ns(void);

/* Begins a clock. `kind`, an enum timerhub_clock, counts only if it is not manual. */
void clock_init(struct clock *clock, uint32_t kind, bool manual);

/* Reads the clock. */
uint64_t clock_now_ns(const struct clock *clock);

/*
 * Tells whether a relative sleep could miss a time, because the clock is set, or runs in a suspend.
 */
bool clock_needs_deadline_fd(const struct clock *clock);

/*
 * Moves a manual clock, by one thread at a time. Returns false, and does nothing, if it would go
 * back.
 */
bool clock_set(struct clock *clock, uint64_t now_ns);

#endif
