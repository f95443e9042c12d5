/* SPDX-License-Identifier: MIT */
/*
 * What ends a sleep on the clocks that a relative sleep does not follow: a timerfd, which goes off
 * at an instant of its clock, suspended or not, and when the wall clock is set. The owner's.
 */
#ifndef TIMERHUB_ALARM_H
#define TIMERHUB_ALARM_H

#include "clock.h"

struct alarm {
	const struct clock *clock;
	int fd; /* to be polled together with the bell; -1: the clock needs none */
};

/* 0, or a negative errno. */
int alarm_open(struct alarm *alarm, const struct clock *clock);
void alarm_close(struct alarm *alarm);

/*
 * Make the fd readable from this instant on (UINT64_MAX: not at all), and as soon as the clock is
 * set; until the next call. 0; or -ECANCELED: the clock was set since the last call, look at it
 * again; or another negative errno of the kernel's.
 */
int alarm_set(struct alarm *alarm, uint64_t at_ns);

#endif
