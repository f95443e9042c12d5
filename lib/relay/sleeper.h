/* SPDX-License-Identifier: MIT */
/*
 * How a shard's thread sleeps: in poll(), on the descriptors of its connections, that of a
 * timerhub_loop of its own, and an eventfd by which callers wake it. No other thread wakes in
 * between: under load, each thread that has to be scheduled before a task comes makes the task
 * later.
 */
#ifndef RELAY_NAP_H
#define RELAY_NAP_H

#include <stdint.h>

struct nap;
struct pollfd;

int nap_open(struct nap **ret_nap);

/* On the thread that is to sleep, once. */
int nap_begin(struct nap *nap);

/* The thread that has begun has ended. NULL is fine. */
void nap_close(struct nap *nap);

/* CLOCK_BOOTTIME: a machine that was suspended looks at once. */
uint64_t nap_now_ns(void);

/*
 * Sleep until that time, until a descriptor is ready (`revents` say which), or until nap_wake() was
 * called, also if before. Room for two more must be behind the last of the `count` descriptors.
 */
void nap_sleep(struct nap *nap, struct pollfd *fds, unsigned count, uint64_t until_ns);

/* Any thread. */
void nap_wake(struct nap *nap);

#endif
