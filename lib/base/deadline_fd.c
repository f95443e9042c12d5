/* SPDX-License-Identifier: MIT */
/*
 * For the owner or the loop's thread, but for open and close. The time is absolute, so the kernel
 * keeps it through a suspend and in time namespaces. If the clock was set, the next
 * timerfd_settime() says so, and still sets. Nobody needs to read the timerfd.
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

/*
 * Capped: a time namespace's offset is subtracted, and INT64_MAX minus a negative one lies in the
 * past.
 */
#define ALARM_MAX_NS ((uint64_t)1 << 62)
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

/* Never is far away too: a disarmed timerfd would not tell that the clock is set. */
static uint64_t alarm_cap(uint64_t at_ns, uint64_t now_ns)
{
	/* clock that is as late by itself has no negative offset */
	return u64_min(at_ns, now_ns < ALARM_MAX_NS ? ALARM_MAX_NS : INT64_MAX);
}

int deadline_fd_set(struct deadline_fd *deadline_fd, uint64_t at_ns, uint64_t now_ns)
{
	uint64_t capped_ns = alarm_cap(at_ns, now_ns);
	struct itimerspec at = {
		.it_value = {
			.tv_sec = (time_t)(capped_ns / 1000000000u),
			.tv_nsec = (long)(capped_ns % 1000000000u),
		},
	};
	int flags =
		TFD_TIMER_ABSTIME | (deadline_fd->clock->goes_back ? TFD_TIMER_CANCEL_ON_SET : 0);

	return timerfd_settime(deadline_fd->fd, flags, &at, NULL) < 0 ? -errno : 0;
}

void deadline_fd_settle(const struct deadline_fd *deadline_fd)
{
	struct pollfd fd = { .fd = deadline_fd->fd, .events = POLLIN };
	struct timespec limit = { .tv_nsec = ALARM_SETTLES_NS };

	/* syscall(2) is no cancellation point */
	(void)syscall(SYS_ppoll, &fd, 1, &limit, NULL, 0);
}
