/* SPDX-License-Identifier: MIT */
/*
 * A shard's thread sleeps in poll(2) on its connections, a timerfd and an eventfd for callers. The
 * timer wakes it directly: on a busy machine each thread between delays a task.
 */
#ifndef RELAY_SLEEPER_H
#define RELAY_SLEEPER_H

#include "base/clock.h"

struct sleeper;
struct pollfd;

int sleeper_open(struct sleeper **ret_sleeper);

/* Close the sleeper, after the thread that sleeps with it has ended. The sleeper may be NULL. */
void sleeper_close(struct sleeper *sleeper);

/*
 * Returns the time on CLOCK_BOOTTIME. All `_ns` times of a shard are on it; only the timeout of
 * wire_call() counts on CLOCK_MONOTONIC, and the two must not be mixed.
 */
static inline uint64_t sleeper_now_ns(void)
{
	return clock_boottime_ns();
}

/*
 * Until `until_ns`, a ready descriptor, or sleeper_wake(), also an earlier one. Sets `revents`;
 * `fds` has room for two more.
 */
void sleeper_sleep(struct sleeper *sleeper, struct pollfd *fds, unsigned count, uint64_t until_ns);

/* Wake the sleeping thread. Any thread may call sleeper_wake(). */
void sleeper_wake(struct sleeper *sleeper);

#endif
