/* SPDX-License-Identifier: MIT */
/*
 * Lets a shard's thread sleep in poll(2) until a time, a reply or a caller. The thread polls its
 * connections, its own timerhub_loop, and an eventfd by which callers wake it. No other thread
 * stands between a timer and this thread. On a busy machine every thread between a timer and this
 * thread would delay the task.
 */
#ifndef RELAY_SLEEPER_H
#define RELAY_SLEEPER_H

#include <stdint.h>

struct sleeper;
struct pollfd;

int sleeper_open(struct sleeper **ret_sleeper);

/* Create the loop. Call this function once, on the thread that will sleep. */
int sleeper_begin(struct sleeper *sleeper);

/* Close the sleeper, after the sleeping thread has ended. The sleeper may be NULL. */
void sleeper_close(struct sleeper *sleeper);

/*
 * Returns the time on CLOCK_BOOTTIME, so that a timeout which passed during a suspend expires at
 * once after it.
 */
uint64_t sleeper_now_ns(void);

/*
 * Sleep until `until_ns`, or until a descriptor is ready, which `revents` says, or until
 * sleeper_wake() is called. If sleeper_wake() was called before the sleep, the sleep returns at
 * once. The array must have room for two more descriptors after `count`.
 */
void sleeper_sleep(struct sleeper *sleeper, struct pollfd *fds, unsigned count, uint64_t until_ns);

/* Wake the sleeping thread. Any thread may call. */
void sleeper_wake(struct sleeper *sleeper);

#endif
