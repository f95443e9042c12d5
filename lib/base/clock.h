/* SPDX-License-Identifier: MIT */
/*
 * What time it is: a hub's clock, one of the kernel's or one that is moved by hand. Any thread.
 */
#ifndef TIMERHUB_CLOCK_H
#define TIMERHUB_CLOCK_H

#include "base/atomic.h"

/* The kernel's clocks, by what they do. Of these only the wall clock can go back. */
enum clock_kind {
	CLOCK_KIND_MONOTONIC, /* stands still during suspend */
	CLOCK_KIND_BOOTTIME,  /* does not */
	CLOCK_KIND_REALTIME,  /* the wall clock: it may be set, either way */
	CLOCK_KIND_MANUAL,    /* moved by clock_set() alone */
};

struct clock {
	bool manual;          /* moved by clock_set() alone; fixed at open */
	bool goes_back;       /* it may; fixed at open */
	int id;               /* the kernel's name of it; fixed at open */
	atomic_u64 manual_ns; /* a manual clock's reading; its one mover writes */
};

/* The kernel's monotonic clock, in ns. */
uint64_t clock_monotonic_ns(void);

void clock_init(struct clock *clock, enum clock_kind kind);

uint64_t clock_now_ns(const struct clock *clock);

/* Does the kernel's relative sleep lie about this clock: suspended time, or the clock being set? */
bool clock_needs_deadline_fd(const struct clock *clock);

/*
 * Move a manual clock; false, and nothing done, if that would be backwards. One thread at a time.
 */
bool clock_set(struct clock *clock, uint64_t now_ns);

#endif
