/* SPDX-License-Identifier: MIT */
/*
 * The sleeper that works everywhere: ppoll(2) on the bell. The owner calls. Timer slack is set to
 * 1 ns on the owner's thread, without which every ppoll would be 50 µs late.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "notifier.h"
#include "sleeper.h"

static int poll_start(struct sleeper *sleeper)
{
	(void)sleeper;
	/* Refused by some sandboxes: then we are later, never early. */
	(void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	return 0;
}

static int poll_sleep(struct sleeper *sleeper, uint64_t timeout_ns)
{
	struct pollfd pollfd = { .fd = sleeper->bell, .events = POLLIN };
	struct timespec timeout = {
		.tv_sec = (long)(timeout_ns / 1000000000u),
		.tv_nsec = (long)(timeout_ns % 1000000000u),
	};
	int ready = ppoll(&pollfd, 1, timeout_ns == UINT64_MAX ? NULL : &timeout, NULL);

	if (ready < 0)
		return errno == EINTR ? 0 : -errno;
	if (ready > 0)
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

void sleeper_open_poll(struct sleeper *sleeper, int bell)
{
	*sleeper = (struct sleeper){ .ops = &sleeper_poll_ops, .bell = bell };
}
