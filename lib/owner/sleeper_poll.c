/* SPDX-License-Identifier: MIT */
/*
 * Works everywhere, by ppoll(2) on bell and timerfd; only the owner calls it. Timer slack of 1 ns:
 * with the default ppoll returns 50 µs late. Where ppoll is refused (RLIMIT_NOFILE of 0, a filter)
 * or always interrupted, the owner waits up to 1 ms on a futex that nobody wakes, so it serves
 * callers up to 1 ms late. tests/faults/ refuses the calls.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "base/bell.h"
#include "base/futex.h"
#include "owner/sleeper.h"

#define POLL_NAP_NS 1000000

static int poll_start(struct sleeper *sleeper)
{
	(void)sleeper;
	/* refused in some sandboxes: later wakes, never early */
	(void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	return 0;
}

static void poll_nap(uint64_t timeout_ns)
{
	static const atomic_u32 nobody;

	futex_wait(&nobody, 0, timeout_ns < POLL_NAP_NS ? timeout_ns : POLL_NAP_NS);
}

/* Model of the bell: tests/models/promise.pml. */
static int poll_sleep(struct sleeper *sleeper, uint64_t timeout_ns)
{
	/* ppoll ignores a descriptor of -1. */
	struct pollfd fds[] = { { .fd = sleeper->bell, .events = POLLIN },
		                { .fd = sleeper->deadline_fd, .events = POLLIN } };
	struct timespec timeout = {
		.tv_sec = (long)(timeout_ns / 1000000000u),
		.tv_nsec = (long)(timeout_ns % 1000000000u),
	};
	int ready = ppoll(fds, 2, timeout_ns == UINT64_MAX ? NULL : &timeout, NULL);

	if (ready >= 0)
		sleeper->interruptions = 0;
	else if (errno != EINTR || ++sleeper->interruptions > SLEEPER_INTERRUPTIONS_MAX)
		poll_nap(timeout_ns);
	if (ready > 0 && fds[0].revents != 0)
		bell_clear(sleeper->bell);
	return 0;
}

static void poll_close(struct sleeper *sleeper)
{
	(void)sleeper;
}

static const struct sleeper_ops sleeper_poll_ops = {
	.start = poll_start,
	.sleep = poll_sleep,
	.close = poll_close,
};

void sleeper_open_poll(struct sleeper *sleeper, int bell, int deadline_fd)
{
	*sleeper = (struct sleeper){ .ops = &sleeper_poll_ops,
		                     .bell = bell,
		                     .deadline_fd = deadline_fd };
}
