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

/* Closes the sleeper, whose thread has ended. It may be NULL. */
void sleeper_close(struct sleeper *sleeper);

/*
 * Returns the time on CLOCK_BOOTTIME, on which a timeout that ends while the machine is suspended
 * expires as soon as it resumes. All `_ns` times of a shard are on this clock; only those of
 * wire_call() are on CLOCK_MONOTONIC, and must not be mixed with them.
 */
static inline uint64_t sleeper_now_ns(void)
{
	return clock_boottime_ns();
}

/*
 * Sleeps until `until_ns`, until a descriptor is ready, or until a sleeper_wake(), which may have
 * come before. Sets `revents`. The array must have room for two more descriptors.
 */
void sleeper_sleep(struct sleeper *sleeper, struct pollfd *fds, unsigned count, uint64_t until_ns);

/* Wakes the thread that sleeps. Any thread may call it. */
void sleeper_wake(struct sleeper *sleeper);

#endif
