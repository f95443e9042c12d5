/* SPDX-License-Identifier: MIT */
/*
 * Measures the kernel's timers, with one timerfd for each timer and all of them in one epoll, as
 * the manual describes. Any thread may set a timerfd. A timerfd ignores the timer slack.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "subject.h"

#define TIMERFDS_MAX 19000
#define SPARE_FDS 64
#define BATCH 64

static int epoll_fd;
static int *fds;

static void timerfd_open(const struct subject_setup *setup)
{
	struct rlimit limit = { setup->timers + SPARE_FDS, setup->timers + SPARE_FDS };

	/* If the limit stays too low, timerfd_create() fails. */
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0)
		subject_fail("epoll_create1", errno);
	fds = subject_allocate((uint64_t)setup->timers + 1, sizeof(*fds));
	for (uint32_t i = 0; i <= setup->timers; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.u32 = i };

		fds[i] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
		if (fds[i] < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fds[i], &event) < 0)
			subject_fail("timerfd_create", errno);
	}
}

/* Set the timerfd of the timer. A deadline of 0 disarms the timerfd. */
static void timerfd_set(uint32_t timer, uint64_t deadline_ns)
{
	struct itimerspec value = { .it_value = timespec_of(deadline_ns) };

	if (timerfd_settime(fds[timer], TFD_TIMER_ABSTIME, &value, NULL) < 0)
		subject_fail("timerfd_settime", errno);
}

static int timerfd_arm(uint32_t timer, uint64_t delay_ns)
{
	timerfd_set(timer, subject_cached_ns + delay_ns);
	return 0;
}

static void timerfd_cancel(uint32_t timer)
{
	timerfd_set(timer, 0);
}

static void timerfd_run(bool (*done)(void))
{
	struct epoll_event events[BATCH];
	uint64_t count;

	while (!done()) {
		int ready = epoll_wait(epoll_fd, events, BATCH, -1);

		for (int i = 0; i < ready; i++)
			if (read(fds[events[i].data.u32], &count, sizeof(count)) == sizeof(count))
				subject_expired(events[i].data.u32);
	}
}

SUBJECT(timerfd, "timerfd", TIMERS | CROSS,
        CALLS(timerfd_open, subject_cache_now, timerfd_arm, timerfd_arm, timerfd_cancel,
              timerfd_run),
        .timers_max = TIMERFDS_MAX)
