/* SPDX-License-Identifier: MIT */
/*
 * The sleep of a shard's thread. It polls the descriptors of its connections, of its own
 * timerhub_loop, and of an eventfd by which callers wake it. No other thread must wake first. On a
 * busy machine each thread between a timer and a task delays the task.
 */
#ifndef RELAY_SLEEPER_H
#define RELAY_SLEEPER_H

#include <stdint.h>

struct sleeper;
struct pollfd;

int sleeper_open(struct sleeper **ret_sleeper);

/* Call once, on the thread that will sleep. */
int sleeper_begin(struct sleeper *sleeper);

/* The thread that has begun has ended. NULL is fine. */
void sleeper_close(struct sleeper *sleeper);

/* CLOCK_BOOTTIME, so that timeouts expire at once after a suspend. */
uint64_t sleeper_now_ns(void);

/*
 * Sleep until `until_ns`, or until a descriptor is ready, which `revents` says, or until
 * sleeper_wake(). A wake before the sleep counts too. The array must have room for two more
 * descriptors after `count`.
 */
void sleeper_sleep(struct sleeper *sleeper, struct pollfd *fds, unsigned count, uint64_t until_ns);

/* Any thread. */
void sleeper_wake(struct sleeper *sleeper);

#endif
