/* SPDX-License-Identifier: MIT */
/*
 * Implements the sleep of a shard's thread (sleeper.h). Every test of a call in tests/relay also
 * tests the sleeper.
 */
#define _GNU_SOURCE
#include "relay/sleeper.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <timerhub_loop.h>
#include <unistd.h>

#include "relay/ready_fd.h"

#define NS_PER_S UINT64_C(1000000000)
/* further away: no timeout */
#define REACH_NS (UINT64_C(366) * 86400 * NS_PER_S)

struct sleeper {
	/* The loop of the sleeping thread; NULL before sleeper_begin(). */
	struct timerhub_loop *loop;
	struct timerhub_timeout timeout;
	bool rung;   /* the timeout has expired in the current sleep */
	int loop_fd; /* descriptor of `loop` */
	int wake_fd;
};

int sleeper_open(struct sleeper **ret_sleeper)
{
	struct sleeper *sleeper = malloc(sizeof(*sleeper));
	int result;

	if (!sleeper)
		return -ENOMEM;
	*sleeper = (struct sleeper){ .wake_fd = ready_fd_open() };
	if (sleeper->wake_fd < 0) {
		result = sleeper->wake_fd;
		free(sleeper);
		return result;
	}
	*ret_sleeper = sleeper;
	return 0;
}

static void ring(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	struct sleeper *sleeper =
		(struct sleeper *)(void *)((char *)timeout - offsetof(struct sleeper, timeout));

	(void)loop;
	sleeper->rung = true;
}

int sleeper_begin(struct sleeper *sleeper)
{
	const struct timerhub_loop_config config = {
		.size = sizeof(config),
		.timeouts_max = 1,
		.clock = TIMERHUB_CLOCK_BOOTTIME,
	};
	int result = timerhub_loop_open(&sleeper->loop, NULL, &config);

	if (result < 0)
		return result;
	sleeper->loop_fd = timerhub_loop_fd(sleeper->loop);
	return sleeper->loop_fd < 0 ? sleeper->loop_fd
	                            : timerhub_timeout_add(sleeper->loop, &sleeper->timeout, ring);
}

void sleeper_close(struct sleeper *sleeper)
{
	if (!sleeper)
		return;
	timerhub_loop_close(sleeper->loop);
	(void)close(sleeper->wake_fd);
	free(sleeper);
}

uint64_t sleeper_now_ns(void)
{
	struct timespec now;

	/* The call cannot fail, because every Linux has CLOCK_BOOTTIME. */
	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void set_timeout(struct sleeper *sleeper, uint64_t until_ns, uint64_t now_ns)
{
	/*
	 * The calls of timerhub_loop cannot fail, because the timeout is in the loop, and
	 * `until_ns` is an allowed time.
	 */
	if (until_ns - now_ns > REACH_NS)
		(void)timerhub_timeout_stop(sleeper->loop, &sleeper->timeout);
	else
		(void)timerhub_timeout_set_at(sleeper->loop, &sleeper->timeout, until_ns);
}

static bool is_ready(const struct pollfd *fds, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (fds[i].revents)
			return true;
	return false;
}

void sleeper_sleep(struct sleeper *sleeper, struct pollfd *fds, unsigned count, uint64_t until_ns)
{
	uint64_t now_ns = sleeper_now_ns();

	fds[count] = (struct pollfd){ .fd = sleeper->wake_fd, .events = POLLIN };
	fds[count + 1] = (struct pollfd){ .fd = sleeper->loop_fd, .events = POLLIN };
	sleeper->rung = until_ns <= now_ns;
	if (!sleeper->rung)
		set_timeout(sleeper, until_ns, now_ns);
	/* The poll is repeated, because the loop may wake before the timeout expires. */
	do {
		if (!sleeper->rung)
			(void)timerhub_loop_turn(sleeper->loop);
		(void)poll(fds, sleeper->rung ? count + 1 : count + 2, sleeper->rung ? 0 : -1);
	} while (!sleeper->rung && !is_ready(fds, count + 1));
	if (fds[count].revents)
		ready_fd_lower(sleeper->wake_fd);
}

void sleeper_wake(struct sleeper *sleeper)
{
	ready_fd_raise(sleeper->wake_fd);
}
