/* SPDX-License-Identifier: MIT */
/*
 * What time it is: a hub's clock, either the kernel's or one that is moved by hand. Any thread.
 */
#ifndef TIMERHUB_CLOCK_H
#define TIMERHUB_CLOCK_H

#include "atomic.h"

struct clock {
	bool manual;          /* moved by clock_set() alone; fixed at open */
	atomic_u64 manual_ns; /* a manual clock's reading; its one mover writes */
};

/* The kernel's monotonic clock, in ns. */
uint64_t clock_monotonic_ns(void);

void clock_init(struct clock *clock, bool manual);

uint64_t clock_now_ns(const struct clock *clock);

/*
 * Move a manual clock; false, and nothing done, if that would be backwards. One thread at a time.
 */
bool clock_set(struct clock *clock, uint64_t now_ns);

#endif
