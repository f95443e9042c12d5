/* SPDX-License-Identifier: MIT */
/*
 * What ends a sleep on the clocks that a relative sleep does not follow: a timerfd, which goes off
 * at an instant of its clock, suspended or not, and when the wall clock is set. The owner's; an
 * event loop without a hub has one too, if its descriptor is asked for.
 */
#ifndef TIMERHUB_ALARM_H
#define TIMERHUB_ALARM_H

#include "clock.h"

struct alarm {
	const struct clock *clock;
	int fd; /* to be polled together with the bell; -1: the clock needs none */
};

/* An alarm without a timerfd. */
static inline void alarm_init(struct alarm *alarm, const struct clock *clock)
{
	*alarm = (struct alarm){ .clock = clock, .fd = -1 };
}

/* Create its timerfd, whatever the clock is. 0, or a negative errno. */
int alarm_create(struct alarm *alarm);

/* Both, the second if the clock needs it. 0, or a negative errno. */
int alarm_open(struct alarm *alarm, const struct clock *clock);
void alarm_close(struct alarm *alarm);

/*
 * Make the fd readable from this instant on (UINT64_MAX: not at all), and as soon as the clock is
 * set; until the next call. 0; or -ECANCELED: the clock was set since the last call, look at it
 * again; or another negative errno of the kernel's.
 */
int alarm_set(struct alarm *alarm, uint64_t at_ns);

/*
 * Return when the fd is readable, which it is as soon as the kernel has handled its timer
 * interrupt. To be called after alarm_set() to an instant that has passed.
 */
void alarm_settle(const struct alarm *alarm);

#endif
