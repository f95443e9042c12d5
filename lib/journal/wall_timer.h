/* SPDX-License-Identifier: MIT */
/*
 * The journal's two clocks and the timer of the next task, as a table of calls. The real one is a
 * timerfd (wall_timer_real.c); tests have one whose time they set. Calls hold the journal's lock,
 * except those of the clocks and the fd.
 */
#ifndef JOURNAL_ALARM_H
#define JOURNAL_ALARM_H

#include <stdint.h>

struct alarm;

struct alarm_ops {
	uint64_t (*wall_ns)(struct alarm *alarm);      /* CLOCK_REALTIME */
	uint64_t (*monotonic_ns)(struct alarm *alarm); /* for leases and timeouts */
	/* The fd is readable from that time on, and not before; UINT64_MAX: never. */
	void (*set)(struct alarm *alarm, uint64_t due_ns);
	int (*fd)(struct alarm *alarm);
	/* Block until the fd is readable, or some time has passed; may return for no reason. */
	void (*wait)(struct alarm *alarm, uint64_t timeout_ns);
	void (*close)(struct alarm *alarm);
};

struct alarm {
	const struct alarm_ops *ops;
};

int alarm_real_open(struct alarm **ret_alarm);

#endif
