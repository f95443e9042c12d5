/* SPDX-License-Identifier: MIT */
/*
 * A timerfd on the wall clock that nobody reads: readable at the set time, and whenever the wall
 * clock is set, when the first lease's end must be converted again. Set anew it is unreadable until
 * then. tests/journal/test_clock.c sets the wall clock.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "journal/wall_timer.h"

#define NS_PER_S UINT64_C(1000000000)
/* 0 would disarm it; the latest, in 2262, means never */
#define FIRST_NS UINT64_C(1)
#define LAST_NS ((uint64_t)INT64_MAX)

struct wall_timer_real {
	struct wall_timer timer;
	int fd;
	uint64_t due_ns; /* the time to which the timerfd is set */
};

static struct wall_timer_real *wall_timer_real_of(struct wall_timer *timer)
{
	return (struct wall_timer_real *)(void *)timer;
}

static uint64_t wall_timer_real_now_ns(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now); /* cannot fail: every Linux has the clock */
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t wall_timer_real_wall_ns(struct wall_timer *timer)
{
	(void)timer;
	return wall_timer_real_now_ns(CLOCK_REALTIME);
}

static uint64_t wall_timer_real_monotonic_ns(struct wall_timer *timer)
{
	(void)timer;
	return wall_timer_real_now_ns(CLOCK_MONOTONIC);
}

static struct timespec wall_timer_real_time(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S),
		                  .tv_nsec = (long)(ns % NS_PER_S) };
}

/* 0, or -ECANCELED if the wall clock was set since; set in both cases. */
static int wall_timer_real_arm(struct wall_timer_real *real, uint64_t due_ns)
{
	uint64_t capped_ns = due_ns < FIRST_NS ? FIRST_NS : due_ns < LAST_NS ? due_ns : LAST_NS;
	struct itimerspec at = { .it_value = wall_timer_real_time(capped_ns) };
	int flags = TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET;

	real->due_ns = due_ns;
	return timerfd_settime(real->fd, flags, &at, NULL) < 0 ? -errno : 0;
}

static void wall_timer_real_set(struct wall_timer *timer, uint64_t due_ns)
{
	struct wall_timer_real *real = wall_timer_real_of(timer);
	uint64_t now_ns = wall_timer_real_wall_ns(timer);

	/* readable already, and stays so */
	if (due_ns <= now_ns && real->due_ns <= now_ns)
		return;
	/* the clock was set: readable, so that the caller reads it again */
	if (wall_timer_real_arm(real, due_ns) < 0)
		(void)wall_timer_real_arm(real, 0);
}

static int wall_timer_real_fd(struct wall_timer *timer)
{
	return wall_timer_real_of(timer)->fd;
}

static void wall_timer_real_wait(struct wall_timer *timer, uint64_t timeout_ns)
{
	struct pollfd poll_fd = { .fd = wall_timer_real_fd(timer), .events = POLLIN };
	struct timespec timeout = wall_timer_real_time(timeout_ns);

	(void)ppoll(&poll_fd, 1, timeout_ns == UINT64_MAX ? NULL : &timeout, NULL);
}

static void wall_timer_real_close(struct wall_timer *timer)
{
	struct wall_timer_real *real = wall_timer_real_of(timer);

	(void)close(real->fd);
	free(real);
}

static const struct wall_timer_ops wall_timer_real_ops = {
	.wall_ns = wall_timer_real_wall_ns,
	.monotonic_ns = wall_timer_real_monotonic_ns,
	.set = wall_timer_real_set,
	.fd = wall_timer_real_fd,
	.wait = wall_timer_real_wait,
	.close = wall_timer_real_close,
};

int wall_timer_real_open(struct wall_timer **ret_timer)
{
	struct wall_timer_real *real = calloc(1, sizeof(*real));
	int result;

	if (!real)
		return -ENOMEM;
	real->timer.ops = &wall_timer_real_ops;
	real->due_ns = UINT64_MAX;
	real->fd =
		DESCRIPTOR_ABOVE_STDIO(timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC));
	if (real->fd < 0) {
		result = real->fd;
		free(real);
		return result;
	}
	*ret_timer = &real->timer;
	return 0;
}
