/* SPDX-License-Identifier: MIT */
/*
 * Implements the sleeper that works everywhere, by ppoll(2) on the bell and the timerfd. Only the
 * owner calls this sleeper. The sleeper sets the timer slack of the owner's thread to 1 ns. With
 * the default slack, ppoll returns 50 µs late.
 *
 * A sandbox may refuse ppoll, for example by RLIMIT_NOFILE = 0 or a seccomp filter. Signals may
 * also interrupt every ppoll. Without ppoll, the owner waits for up to 1 ms on a futex that is
 * never woken, and makes another pass. The bell does not end this wait. The owner therefore serves
 * callers up to 1 ms late. tests/faults/ refuses the calls of this file.
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
	/* Some sandboxes refuse prctl(). The owner then wakes later, but never early. */
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
