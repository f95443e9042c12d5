/* SPDX-License-Identifier: MIT */
/*
 * Wraps clock_gettime(), timerfd_create(), timerfd_settime() and close(), for CLOCK_REALTIME alone.
 */
#include "wall_clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/timerfd.h>
#include <time.h>

#define SECOND_NS 1000000000u

int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __real_timerfd_create(int id, int flags);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old);
int __real_close(int fd);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_timerfd_create(int id, int flags);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old);
int __wrap_close(int fd);

static _Atomic uint64_t ahead;
static atomic_int timerfd = -1; /* timerfd that was opened last on the wall clock */
/* and no timerfd_settime() has told */
static atomic_bool was_set;

static struct timespec time_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / SECOND_NS),
		                  .tv_nsec = (long)(ns % SECOND_NS) };
}

static uint64_t ns_of(const struct timespec *ts)
{
	return (uint64_t)ts->tv_sec * SECOND_NS + (uint64_t)ts->tv_nsec;
}

void wall_clock_set(uint64_t ahead_ns)
{
	struct itimerspec at_once = { .it_value = { .tv_nsec = 1 } };
	int fd = atomic_load(&timerfd);

	atomic_store(&ahead, ahead_ns);
	atomic_store(&was_set, true);
	/* Without a timerfd, `was_set` makes the owner's next timerfd_settime() fail. */
	if (fd >= 0)
		(void)__real_timerfd_settime(fd, 0, &at_once, NULL);
}

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	int result = __real_clock_gettime(id, ts);

	if (result == 0 && id == CLOCK_REALTIME)
		*ts = time_of(ns_of(ts) + atomic_load(&ahead));
	return result;
}

int __wrap_timerfd_create(int id, int flags)
{
	int fd = __real_timerfd_create(id, flags);

	if (fd >= 0 && id == CLOCK_REALTIME)
		atomic_store(&timerfd, fd);
	return fd;
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old)
{
	struct itimerspec kernels = *at;
	int result;

	if ((flags & TFD_TIMER_CANCEL_ON_SET) == 0)
		return __real_timerfd_settime(fd, flags, at, old);
	kernels.it_value = time_of(ns_of(&at->it_value) - atomic_load(&ahead));
	result = __real_timerfd_settime(fd, flags, &kernels, old);
	if (!atomic_exchange(&was_set, false))
		return result;
	errno = ECANCELED;
	return -1;
}

int __wrap_close(int fd)
{
	int closed = fd;

	(void)atomic_compare_exchange_strong(&timerfd, &closed, -1);
	return __real_close(fd);
}
