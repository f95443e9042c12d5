/* SPDX-License-Identifier: MIT */
/*
 * Lets a shard's thread sleep in poll(2) until a time is reached, a reply comes, or a caller wakes
 * the thread. The thread polls its connections, its own timerhub_loop, and an eventfd by which
 * callers wake the thread. The timer of the loop wakes the thread directly, because on a busy
 * machine each further thread between the timer and the delivery delays the task.
 */
#ifndef RELAY_SLEEPER_H
#define RELAY_SLEEPER_H

#include <stdint.h>

struct sleeper;
struct pollfd;

int sleeper_open(struct sleeper **ret_sleeper);

/* Create the sleeper's loop. The thread that will sleep calls sleeper_begin() once. */
int sleeper_begin(struct sleeper *sleeper);

/* Close the sleeper, after the thread that sleeps with it has ended. The sleeper may be NULL. */
void sleeper_close(struct sleeper *sleeper);

/*
 * Returns the time on CLOCK_BOOTTIME. On CLOCK_BOOTTIME, a timeout that ends during a suspend
 * expires at once after the suspend.
 */
uint64_t sleeper_now_ns(void);

/*
 * Sleep until `until_ns`, until a descriptor of `fds` is ready, or until sleeper_wake() is called.
 * Sets `revents` of the descriptors. If sleeper_wake() was called before the sleep, the sleep
 * returns at once. The array `fds` must have room for two more descriptors behind the first
 * `count`.
 */
void sleeper_sleep(struct sleeper *sleeper, struct pollfd *fds, unsigned count, uint64_t until_ns);

/* Wake the sleeping thread. Any thread may call sleeper_wake(). */
void sleeper_wake(struct sleeper *sleeper);

#endif
