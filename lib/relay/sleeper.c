/* SPDX-License-Identifier: MIT */
/*
 * Lets the thread of a shard sleep until a server, a caller or a deadline wakes it (sleeper.h).
 * Every test of a call in tests/relay also tests the sleeper.
 *
 * sleeper_sleep(): If the timer is already set to a time before `until_ns`, it stays as it is. The
 * thread then wakes up too early once, finds nothing to do, and sleeps again. That costs less than
 * to set the timer before each sleep.
 */
#define _GNU_SOURCE
#include "relay/sleeper.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <timerhub.h>

#include "base/bell.h"
#include "base/deadline_fd.h"

struct sleeper {
	struct clock clock;
	struct deadline_fd deadline; /* readable from the end of the sleep on */
	uint64_t set_ns;             /* what `deadline` is set to */
	int wake_fd;
};

int sleeper_open(struct sleeper **ret_sleeper)
{
	struct sleeper *sleeper = malloc(sizeof(*sleeper));
	int result;

	if (!sleeper)
		return -ENOMEM;
	*sleeper = (struct sleeper){ .set_ns = UINT64_MAX };
	clock_init(&sleeper->clock, TIMERHUB_CLOCK_BOOTTIME, false);
	deadline_fd_init(&sleeper->deadline, &sleeper->clock);
	sleeper->wake_fd = bell_open();
	result = sleeper->wake_fd < 0 ? sleeper->wake_fd : deadline_fd_create(&sleeper->deadline);
	if (result < 0) {
		sleeper_close(sleeper);
		return result;
	}
	*ret_sleeper = sleeper;
	return 0;
}

void sleeper_close(struct sleeper *sleeper)
{
	if (!sleeper)
		return;
	deadline_fd_close(&sleeper->deadline);
	bell_close(sleeper->wake_fd);
	free(sleeper);
}

void sleeper_sleep(struct sleeper *sleeper, struct pollfd *fds, unsigned count, uint64_t until_ns)
{
	uint64_t now_ns = sleeper_now_ns();
	int timeout_ms = until_ns <= now_ns ? 0 : -1;
	bool is_set = deadline_fd_ends_by(sleeper->set_ns, until_ns, now_ns);

	fds[count] = (struct pollfd){ .fd = sleeper->wake_fd, .events = POLLIN };
	fds[count + 1] = (struct pollfd){ .fd = sleeper->deadline.fd, .events = POLLIN };
	if (timeout_ms < 0 && !is_set && deadline_fd_set(&sleeper->deadline, until_ns) == 0) {
		sleeper->set_ns = until_ns;
		is_set = true;
	}
	/*
	 * If a sandbox refuses to set the timer, sleep by poll's own timeout, which has only
	 * milliseconds.
	 */
	if (timeout_ms < 0 && !is_set)
		timeout_ms = until_ns - now_ns < NS_PER_S
		                     ? (int)((until_ns - now_ns) / NS_PER_MS) + 1
		                     : 1000;
	(void)poll(fds, count + 2, timeout_ms);
	if (fds[count].revents)
		bell_clear(sleeper->wake_fd);
}

void sleeper_wake(struct sleeper *sleeper)
{
	bell_ring(sleeper->wake_fd);
}
