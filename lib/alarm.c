/* SPDX-License-Identifier: MIT */
/*
 * See alarm.h. The only home of sys/timerfd.h. The owner makes all calls except open and close.
 *
 * The timer is absolute: the kernel computes what is left, also after suspend, and inside time
 * namespaces. If the clock was set, the next timerfd_settime() says so and sets the timer all the
 * same, so the fd is never read.
 */
#define _GNU_SOURCE
#include "alarm.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bits.h"

#define ALARM_NEVER_NS ((uint64_t)INT64_MAX)
#define ALARM_SETTLES_NS 1000000 /* a timer set to the past goes off long before */

int alarm_create(struct alarm *alarm)
{
	int fd = timerfd_create(alarm->clock->id, TFD_NONBLOCK | TFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	alarm->fd = fd;
	return 0;
}

int alarm_open(struct alarm *alarm, const struct clock *clock)
{
	alarm_init(alarm, clock);
	return clock_needs_alarm(clock) ? alarm_create(alarm) : 0;
}

void alarm_close(struct alarm *alarm)
{
	if (alarm->fd < 0)
		return;
	(void)close(alarm->fd);
	alarm->fd = -1;
}

int alarm_set(struct alarm *alarm, uint64_t at_ns)
{
	/*
	 * Never is far away, and not 0, which would disarm it, and with that the telling of the
	 * clock being set.
	 */
	uint64_t capped_ns = u64_min(at_ns, ALARM_NEVER_NS);
	struct itimerspec at = {
		.it_value = {
			.tv_sec = (time_t)(capped_ns / 1000000000u),
			.tv_nsec = (long)(capped_ns % 1000000000u),
		},
	};
	int flags = TFD_TIMER_ABSTIME | (alarm->clock->goes_back ? TFD_TIMER_CANCEL_ON_SET : 0);

	return timerfd_settime(alarm->fd, flags, &at, NULL) < 0 ? -errno : 0;
}

void alarm_settle(const struct alarm *alarm)
{
	struct pollfd fd = { .fd = alarm->fd, .events = POLLIN };
	struct timespec limit = { .tv_nsec = ALARM_SETTLES_NS };

	/* By syscall(2), no cancellation point. If it is refused, the fd is readable soon. */
	(void)syscall(SYS_ppoll, &fd, 1, &limit, NULL, 0);
}
