/* SPDX-License-Identifier: MIT */
/*
 * The kernel's own timers. "timerfd" has one timerfd for each timer, all in one epoll, as its
 * manual describes. Any thread may set one. "timerfd-loop", only in the lateness table, is a
 * single-threaded loop over a heap, with one timerfd in epoll. Both set a timer slack of 1 ns,
 * which a timerfd ignores.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "clocks.h"
#include "heap4.h"
#include "subject_list.h"

#define TIMERFDS_MAX 19000
#define SPARE_FDS 64
#define BATCH 64

static int epoll_fd;
static int *fds;
static _Thread_local uint64_t cached_ns;

static int timerfd_add(uint32_t data)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = data };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	if (fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		subject_fail("timerfd_create", errno);
	return fd;
}

static void timerfd_set(int fd, uint64_t deadline_ns)
{
	struct itimerspec value = { .it_value = timespec_from_ns(deadline_ns) };

	if (timerfd_settime(fd, TFD_TIMER_ABSTIME, &value, NULL) < 0)
		subject_fail("timerfd_settime", errno);
}

static void timerfd_open(const struct subject_setup *setup)
{
	struct rlimit limit = { setup->timers + SPARE_FDS, setup->timers + SPARE_FDS };

	(void)setrlimit(RLIMIT_NOFILE, &limit); /* a failure shows at creation */
	(void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	fds = subject_allocate((uint64_t)setup->timers + 1, sizeof(*fds));
	for (uint32_t i = 0; i <= setup->timers; i++)
		fds[i] = timerfd_add(i);
}

static void timerfd_tick(void)
{
	cached_ns = now_ns();
}

static int timerfd_arm(uint32_t timer, uint64_t delay_ns)
{
	timerfd_set(fds[timer], cached_ns + delay_ns);
	return 0;
}

static void timerfd_cancel(uint32_t timer)
{
	struct itimerspec never = { { 0, 0 }, { 0, 0 } };

	if (timerfd_settime(fds[timer], 0, &never, NULL) < 0)
		subject_fail("timerfd_settime", errno);
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

const struct subject subject_timerfd = {
	.name = "timerfd",
	.how = "one timerfd a timer, all in one epoll",
	.can = CAN_REARM | CAN_CANCEL | CAN_EXPIRE | CAN_CROSS | CAN_ANY_THREAD | CAN_PUSH_TAKE |
	       CAN_BE_LATE,
	.timers_max = TIMERFDS_MAX,
	.open = timerfd_open,
	.tick = timerfd_tick,
	.arm = timerfd_arm,
	.rearm = timerfd_arm,
	.cancel = timerfd_cancel,
	.run = timerfd_run,
};

/* ---- a single-threaded loop over a heap ---- */

static struct heap4 heap;

static void loop_open(const struct subject_setup *setup)
{
	heap4_open(&heap, setup->timers + 1);
	(void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	fds = subject_allocate(1, sizeof(*fds));
	fds[0] = timerfd_add(0);
}

static int loop_arm(uint32_t timer, uint64_t delay_ns)
{
	heap4_put(&heap, timer, cached_ns + delay_ns);
	return 0;
}

static void loop_cancel(uint32_t timer)
{
	heap4_remove(&heap, timer);
}

static void loop_wait_until(uint64_t deadline_ns)
{
	struct epoll_event event;
	uint64_t count;

	timerfd_set(fds[0], deadline_ns);
	if (epoll_wait(epoll_fd, &event, 1, -1) == 1 &&
	    read(fds[0], &count, sizeof(count)) != sizeof(count))
		subject_fail("timerfd read", errno);
}

static void loop_run(bool (*done)(void))
{
	uint32_t timers[BATCH];

	while (!done()) {
		uint32_t taken = heap4_take(&heap, now_ns(), timers, BATCH);

		for (uint32_t i = 0; i < taken; i++)
			subject_expired(timers[i]);
		if (taken == 0)
			loop_wait_until(heap4_next_ns(&heap));
	}
}

const struct subject subject_timerfd_loop = {
	.name = "timerfd-loop",
	.how = "a single-threaded heap with one timerfd in epoll",
	.can = CAN_BE_LATE,
	.open = loop_open,
	.tick = timerfd_tick,
	.arm = loop_arm,
	.cancel = loop_cancel,
	.run = loop_run,
};
