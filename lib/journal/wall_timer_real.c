/* SPDX-License-Identifier: MIT */
/*
 * See wall_timer.h: a timerfd on the wall clock that no thread reads. The kernel makes it readable
 * at the set time, and also when the clock is set: the journal then converts the end of the first
 * lease to the new wall clock. Setting the timer makes the fd unreadable. Tests set the clock:
 * tests/journal/test_clock.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "journal/wall_timer.h"

#define NS_PER_S UINT64_C(1000000000)
/* 0 would disarm it, and "never" is as far away as the kernel can tell, in the year 2262. */
#define FIRST_NS UINT64_C(1)
#define LAST_NS ((uint64_t)INT64_MAX)

struct alarm_real {
	struct alarm alarm;
	int timer;
	uint64_t due_ns; /* what it is set to */
};

static struct alarm_real *alarm_real_of(struct alarm *alarm)
{
	return (struct alarm_real *)(void *)alarm;
}

static uint64_t alarm_real_now_ns(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now); /* both exist everywhere */
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t alarm_real_wall_ns(struct alarm *alarm)
{
	(void)alarm;
	return alarm_real_now_ns(CLOCK_REALTIME);
}

static uint64_t alarm_real_monotonic_ns(struct alarm *alarm)
{
	(void)alarm;
	return alarm_real_now_ns(CLOCK_MONOTONIC);
}

static struct timespec alarm_real_time(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S),
		                  .tv_nsec = (long)(ns % NS_PER_S) };
}

/* 0, or -ECANCELED: the clock was set, and the timer is set all the same. */
static int alarm_real_arm(struct alarm_real *real, uint64_t due_ns)
{
	uint64_t capped_ns = due_ns < FIRST_NS ? FIRST_NS : due_ns < LAST_NS ? due_ns : LAST_NS;
	struct itimerspec at = { .it_value = alarm_real_time(capped_ns) };
	int flags = TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET;

	real->due_ns = due_ns;
	return timerfd_settime(real->timer, flags, &at, NULL) < 0 ? -errno : 0;
}

static void alarm_real_set(struct alarm *alarm, uint64_t due_ns)
{
	struct alarm_real *real = alarm_real_of(alarm);
	uint64_t now_ns = alarm_real_wall_ns(alarm);

	/* It rings for another that is due, and goes on. */
	if (due_ns <= now_ns && real->due_ns <= now_ns)
		return;
	/* The caller has looked at the old clock: it is to look again. */
	if (alarm_real_arm(real, due_ns) < 0)
		(void)alarm_real_arm(real, 0);
}

static int alarm_real_fd(struct alarm *alarm)
{
	return alarm_real_of(alarm)->timer;
}

static void alarm_real_wait(struct alarm *alarm, uint64_t timeout_ns)
{
	struct pollfd poll_fd = { .fd = alarm_real_fd(alarm), .events = POLLIN };
	struct timespec timeout = alarm_real_time(timeout_ns);

	(void)ppoll(&poll_fd, 1, timeout_ns == UINT64_MAX ? NULL : &timeout, NULL);
}

static void alarm_real_close(struct alarm *alarm)
{
	struct alarm_real *real = alarm_real_of(alarm);

	(void)close(real->timer);
	free(real);
}

static const struct alarm_ops alarm_real_ops = {
	.wall_ns = alarm_real_wall_ns,
	.monotonic_ns = alarm_real_monotonic_ns,
	.set = alarm_real_set,
	.fd = alarm_real_fd,
	.wait = alarm_real_wait,
	.close = alarm_real_close,
};

int alarm_real_open(struct alarm **ret_alarm)
{
	struct alarm_real *real = calloc(1, sizeof(*real));
	int result;

	if (!real)
		return -ENOMEM;
	real->alarm.ops = &alarm_real_ops;
	real->due_ns = UINT64_MAX;
	real->timer = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	if (real->timer < 0) {
		result = -errno;
		free(real);
		return result;
	}
	*ret_alarm = &real->alarm;
	return 0;
}
