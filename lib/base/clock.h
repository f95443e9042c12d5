/* SPDX-License-Identifier: MIT */
/* Reads the clock of a hub: a clock of the kernel or a manual clock. Thread-safe. */
#ifndef TIMERHUB_CLOCK_H
#define TIMERHUB_CLOCK_H

#include "base/atomic.h"

struct clock {
	bool manual;          /* true: only clock_set() moves the clock; fixed at open */
	bool goes_back;       /* true: the clock may go back; fixed at open */
	int id;               /* the kernel's clockid_t; fixed at open */
	atomic_u64 manual_ns; /* time of a manual clock, written by the thread that moves it */
};

/* Returns the kernel's monotonic clock, in ns. */
uint64_t clock_monotonic_ns(void);

/* Initialize the clock. `kind` is an enum timerhub_clock. A manual clock ignores `kind`. */
void clock_init(struct clock *clock, uint32_t kind, bool manual);

uint64_t clock_now_ns(const struct clock *clock);

/* Returns whether a suspend or a set wall clock can make a relative sleep miss a time. */
bool clock_needs_deadline_fd(const struct clock *clock);

/*
 * Set a manual clock to `now_ns`. Only one thread at a time may call clock_set(). Returns false if
 * the clock would move back.
 */
bool clock_set(struct clock *clock, uint64_t now_ns);

#endif
