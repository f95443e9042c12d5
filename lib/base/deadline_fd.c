/* SPDX-License-Identifier: MIT */
/*
 * Implements deadline_fd.h, for the owner or the loop's thread, but for open and close. Nobody
 * needs to read the timerfd: to set it anew makes it unreadable.
 *
 * On the wall clock the time is absolute, since the clock may be set; the next timerfd_settime()
 * then says so, and still sets. On the other clocks it is relative, because libfaketime, under
 * which builds and test suites run, takes every absolute time for one of the wall clock, so the
 * timerfd would never expire. A relative time on CLOCK_BOOTTIME passes during a suspend too, and no
 * offset of a time namespace applies to it. If the thread is stopped, or the machine suspended,
 * between its reading of the clock and the setting, the timerfd expires later by that time; it
 * never expires early.
 */
#define _GNU_SOURCE
#include "base/deadline_fd.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/descriptor.h"

#define ALARM_MAX_NS                                                                               \
	((uint64_t)1 << 62)      /* of a relative time, to which the kernel adds its clock */
#define ALARM_SETTLES_NS 1000000 /* much longer than a past time takes to expire */

int deadline_fd_create(struct deadline_fd *deadline_fd)
{
	int fd = DESCRIPTOR_ABOVE_STDIO(
		timerfd_create(deadline_fd->clock->id, TFD_NONBLOCK | TFD_CLOEXEC));

	if (fd < 0)
		return fd;
	deadline_fd->fd = fd;
	return 0;
}

void deadline_fd_close(struct deadline_fd *deadline_fd)
{
	if (deadline_fd->fd < 0)
		return;
	(void)close(deadline_fd->fd);
	deadline_fd->fd = -1;
}

void deadline_fd_disarm(const struct deadline_fd *deadline_fd)
{
	const struct itimerspec never = { .it_value = { .tv_sec = 0 } };

	/* Ignored: if a filter refuses it, nothing is worse than without this call. */
	if (deadline_fd->fd >= 0)
		(void)timerfd_settime(deadline_fd->fd, 0, &never, NULL);
}

/* Returns what timerfd_settime() is given for a time, on a clock that is not the wall clock. */
static uint64_t alarm_relative(const struct clock *clock, uint64_t at_ns)
{
	uint64_t now_ns = clock_now_ns(clock);

	/* 0 would disarm it */
	return at_ns > now_ns ? u64_min(at_ns - now_ns, ALARM_MAX_NS) : 1;
}

int deadline_fd_set(struct deadline_fd *deadline_fd, uint64_t at_ns)
{
	bool wall = deadline_fd->clock->goes_back;
	/* Never is far away too: a disarmed timerfd would not tell that the clock is set. */
	uint64_t alarm_ns =
		wall ? u64_min(at_ns, INT64_MAX) : alarm_relative(deadline_fd->clock, at_ns);
	struct itimerspec at = {
		.it_value = {
			.tv_sec = (time_t)(alarm_ns / 1000000000u),
			.tv_nsec = (long)(alarm_ns % 1000000000u),
		},
	};
	int flags = wall ? TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET : 0;

	return timerfd_settime(deadline_fd->fd, flags, &at, NULL) < 0 ? -errno : 0;
}

void deadline_fd_settle(const struct deadline_fd *deadline_fd)
{
	struct pollfd fd = { .fd = deadline_fd->fd, .events = POLLIN };
	struct timespec limit = { .tv_nsec = ALARM_SETTLES_NS };

	/* syscall(2) is no cancellation point */
	(void)syscall(SYS_ppoll, &fd, 1, &limit, NULL, 0);
}
