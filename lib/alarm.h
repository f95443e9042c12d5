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

#ifdef TIMERHUB_TEST_POINTS
/*
 * Set the wall clock of every hub, and tell the alarm opened last for it as the kernel would. The
 * kernel's clock stays as it is.
 */
void alarm_test_set_clock(uint64_t ahead_ns);
#endif

#endif
