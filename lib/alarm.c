/* SPDX-License-Identifier: MIT */
/*
 * See alarm.h. The only home of sys/timerfd.h. The owner makes all calls except open and close.
 *
 * The timer is absolute: the kernel computes what is left, also after suspend, and inside time
 * namespaces. If the clock was set, the next timerfd_settime() says so and sets the timer all the
 * same, so the fd is never read.
 */
#include "alarm.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define ALARM_NEVER_NS ((uint64_t)INT64_MAX)

#ifdef TIMERHUB_TEST_POINTS
static struct {
	atomic_u32 fd_plus_one; /* the wall clock's alarm; 0: none */
	atomic_u32 set;         /* 1: the clock was set, and no alarm_set() has told yet */
} alarm_test;

void alarm_test_set_clock(uint64_t ahead_ns)
{
	struct itimerspec at_once = { .it_value = { .tv_nsec = 1 } };
	uint32_t fd_plus_one = u32_load_seq_cst(&alarm_test.fd_plus_one);

	u64_store_seq_cst(&clock_test_ahead_ns, ahead_ns);
	u32_store_seq_cst(&alarm_test.set, 1);
	/* If this comes before the owner's own setting, the owner finds the flag. */
	if (fd_plus_one > 0)
		(void)timerfd_settime((int)fd_plus_one - 1, 0, &at_once, NULL);
}

static void alarm_test_opened(const struct alarm *alarm, bool open)
{
	if (alarm->clock->goes_back)
		u32_store_seq_cst(&alarm_test.fd_plus_one, open ? (uint32_t)alarm->fd + 1 : 0);
}

static bool alarm_test_was_set(const struct alarm *alarm)
{
	return alarm->clock->goes_back && u32_exchange_seq_cst(&alarm_test.set, 0) != 0;
}
#else
static void alarm_test_opened(const struct alarm *alarm, bool open)
{
	(void)alarm;
	(void)open;
}

static bool alarm_test_was_set(const struct alarm *alarm)
{
	(void)alarm;
	return false;
}
#endif

int alarm_open(struct alarm *alarm, const struct clock *clock)
{
	*alarm = (struct alarm){ .clock = clock, .fd = -1 };
	if (!clock_needs_alarm(clock))
		return 0;
	alarm->fd = timerfd_create(clock->id, TFD_NONBLOCK | TFD_CLOEXEC);
	if (alarm->fd < 0)
		return -errno;
	alarm_test_opened(alarm, true);
	return 0;
}

void alarm_close(struct alarm *alarm)
{
	if (alarm->fd < 0)
		return;
	alarm_test_opened(alarm, false);
	(void)close(alarm->fd);
	alarm->fd = -1;
}

int alarm_set(struct alarm *alarm, uint64_t at_ns)
{
	/*
	 * Never is far away, and not 0, which would disarm it, and with that the telling of the
	 * clock being set.
	 */
	uint64_t kernel_ns =
		at_ns >= ALARM_NEVER_NS ? ALARM_NEVER_NS : clock_kernel_ns(alarm->clock, at_ns);
	struct itimerspec at = {
		.it_value = {
			.tv_sec = (time_t)(kernel_ns / 1000000000u),
			.tv_nsec = (long)(kernel_ns % 1000000000u),
		},
	};
	int flags = TFD_TIMER_ABSTIME | (alarm->clock->goes_back ? TFD_TIMER_CANCEL_ON_SET : 0);
	int result = timerfd_settime(alarm->fd, flags, &at, NULL);

	if (alarm_test_was_set(alarm))
		return -ECANCELED;
	return result < 0 ? -errno : 0;
}
