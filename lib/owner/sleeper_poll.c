/* SPDX-License-Identifier: MIT */
/*
 * Sleeps in ppoll(2) on the bell (the eventfd with which callers wake the owner) and on the
 * timerfd, if there is one.
 *
 * The owner must be able to sleep whatever happens, so this sleeper never fails. Where ppoll is
 * refused, by an RLIMIT_NOFILE of 0 or by a filter, or always interrupted, it waits for at most 1
 * ms on a futex that nobody wakes. The owner then serves its callers up to 1 ms late, but does not
 * keep a CPU busy. tests/faults/ refuses the calls.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "base/bell.h"
#include "base/clock.h"
#include "base/futex.h"
#include "owner/sleeper.h"

#define POLL_NAP_NS 1000000

static int poll_start(struct sleeper *sleeper)
{
	(void)sleeper;
	/*
	 * With the default timer slack, ppoll() returns up to 50 us late. If a sandbox refuses this
	 * call, the owner has to live with that.
	 */
	(void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	return 0;
}

/*
 * Waits for at most 1 ms, because ppoll(2) has failed. A caller that wants to wake the owner can't
 * end this wait, so it must be short.
 */
static void poll_nap(uint64_t timeout_ns)
{
	static const atomic_u32 nobody;

	futex_wait(&nobody, 0, timeout_ns < POLL_NAP_NS ? timeout_ns : POLL_NAP_NS);
}

/*
 * Sleeps in ppoll(2). If a caller has written to the eventfd `bell`, reads it, because otherwise
 * the next sleep would end at once.
 */
static int poll_sleep(struct sleeper *sleeper, uint64_t timeout_ns)
{
	/* ppoll() ignores a descriptor of -1, so it does not matter whether there is a timerfd. */
	struct pollfd fds[] = { { .fd = sleeper->bell, .events = POLLIN },
		                { .fd = sleeper->deadline_fd, .events = POLLIN } };
	struct timespec timeout = timespec_of(timeout_ns);
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
