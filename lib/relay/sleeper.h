/* SPDX-License-Identifier: MIT */
/*
 * A shard's thread sleeps in poll(2) on its connections, a timerfd and an eventfd for callers. The
 * timer wakes it directly: on a busy machine each thread between delays a task.
 */
#ifndef RELAY_SLEEPER_H
#define RELAY_SLEEPER_H

#include <stdint.h>

struct sleeper;
struct pollfd;

int sleeper_open(struct sleeper **ret_sleeper);

/* Close the sleeper, after the thread that sleeps with it has ended. The sleeper may be NULL. */
void sleeper_close(struct sleeper *sleeper);

/*
 * On CLOCK_BOOTTIME, so that a timeout that ends during a suspend expires at once after it. All
 * `_ns` times of a shard are on it; only wire_call()'s are on CLOCK_MONOTONIC: never mix them.
 */
uint64_t sleeper_now_ns(void);

/*
 * Until `until_ns`, a ready descriptor, or sleeper_wake(), also an earlier one. Sets `revents`;
 * `fds` has room for two more.
 */
void sleeper_sleep(struct sleeper *sleeper, struct pollfd *fds, unsigned count, uint64_t until_ns);

/* Wake the sleeping thread. Any thread may call sleeper_wake(). */
void sleeper_wake(struct sleeper *sleeper);

#endif
