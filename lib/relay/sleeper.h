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

/* Frees a sleeper whose thread has ended. It may be NULL. */
void sleeper_close(struct sleeper *sleeper);

/*
 * Returns the time on CLOCK_BOOTTIME, so that a timeout that ends during a suspend expires at the
 * resume. wire_call() uses CLOCK_MONOTONIC: never mix the two.
 */
static inline uint64_t sleeper_now_ns(void)
{
	return clock_boottime_ns();
}

/*
 * Sleeps until `until_ns`, a ready descriptor or sleeper_wake(). A sleeper_wake() before the sleep
 * ends it at once. Sets `revents`. `fds` needs room for two more entries after the first `count`.
 */
void sleeper_sleep(struct sleeper *sleeper, struct pollfd *fds, unsigned count, uint64_t until_ns);

/* Wakes the thread that sleeps, or lets its next sleep end at once. Any thread may call it. */
void sleeper_wake(struct sleeper *sleeper);

#endif
