/* SPDX-License-Identifier: MIT */
/*
 * The timerfd that ends a sleep (deadline_fd.h). Another thread may create and close it, but only
 * the owner or the loop's thread sets it. Nobody needs to read it, because setting it anew makes it
 * unreadable.
 *
 * On the wall clock it is set to an absolute time, because that clock may itself be set. If it was,
 * the next timerfd_settime() returns an error that says so, and has set the timerfd all the same.
 *
 * On the other clocks it is set to a relative time. Builds and test suites run under libfaketime,
 * which takes every absolute time for one of the wall clock, so that the timerfd would never
 * expire. A relative time on CLOCK_BOOTTIME goes on during a suspend, too, and the offset of a time
 * namespace does not matter to it. If the thread is stopped, or the machine suspended, after the
 * clock was read and before the timerfd is set, the timerfd expires that much later. It never
 * expires early.
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
 * The longest time that is given to the kernel as a relative one. The kernel adds its clock to it,
 * and the sum must not overflow.
 */
#define ALARM_MAX_NS ((uint64_t)1 << 62)
/*
 * How long to wait at most until the kernel has seen that a time has passed. It never takes nearly
 * as long.
 */
#define ALARM_SETTLES_NS 1000000

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

	/*
	 * If a filter refuses the call, nothing is worse than without it, so the error is ignored.
	 */
	if (deadline_fd->fd >= 0)
		(void)timerfd_settime(deadline_fd->fd, 0, &never, NULL);
}

/* Returns how many ns are left until `at_ns`, from 1 to ALARM_MAX_NS. */
static uint64_t alarm_relative(const struct clock *clock, uint64_t at_ns)
{
	uint64_t now_ns = clock_now_ns(clock);

	/* A time that has passed becomes 1 ns, because 0 would disarm the timerfd. */
	return at_ns > now_ns ? u64_min(at_ns - now_ns, ALARM_MAX_NS) : 1;
}

int deadline_fd_set(struct deadline_fd *deadline_fd, uint64_t at_ns)
{
	bool wall = deadline_fd->clock->goes_back;
	/*
	 * If the deadline is "never", set the timerfd to the latest time instead of disarming it. A
	 * disarmed timerfd would not become readable when somebody sets the clock.
	 */
	uint64_t alarm_ns =
		wall ? u64_min(at_ns, INT64_MAX) : alarm_relative(deadline_fd->clock, at_ns);
	struct itimerspec at = { .it_value = timespec_of(alarm_ns) };
	int flags = wall ? TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET : 0;

	return timerfd_settime(deadline_fd->fd, flags, &at, NULL) < 0 ? -errno : 0;
}

void deadline_fd_settle(const struct deadline_fd *deadline_fd)
{
	struct pollfd fd = { .fd = deadline_fd->fd, .events = POLLIN };
	struct timespec limit = { .tv_nsec = ALARM_SETTLES_NS };

	/* ppoll(2) is called by syscall(2), because that is not a cancellation point. */
	(void)syscall(SYS_ppoll, &fd, 1, &limit, NULL, 0);
}
