/* SPDX-License-Identifier: MIT */
#include "fault_suite.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

static atomic_uint injected;

/* A test is a process, and this is its end. */
static __attribute__((destructor)) void faults_print(void)
{
	if (atomic_load(&injected) > 0)
		printf("%u faults injected\n", atomic_load(&injected));
}

void faults_count(unsigned count)
{
	atomic_fetch_add(&injected, count);
}

void faults_skip(const char *what, const char *reason)
{
	printf("skipped: %s: %s\n", what, reason);
	fflush(stdout);
}

/* The kernel makes a clock's id from the thread's. */
static uint64_t thread_cpu_ns(pid_t tid)
{
	struct timespec used;

	expect_eq(clock_gettime((clockid_t)(~(unsigned)tid << 3 | 6), &used), 0);
	return (uint64_t)used.tv_sec * SEC + (uint64_t)used.tv_nsec;
}

/* How often an owner that naps for 1 ms may wake in `window_ns`. */
static uint64_t naps_max(uint64_t window_ns)
{
	return 10 + 2 * window_ns / MS;
}

/*
 * Fails if it wakes too often or uses too much CPU: without sleep it would make tens of thousands
 * of rounds.
 */
static void watch_owner(struct timerhub *hub, bool may_nap)
{
	pid_t owner = timerhub_owner_tid(hub);
	uint64_t begun_ns = monotonic_ns();
	uint64_t used_ns = thread_cpu_ns(owner);
	uint64_t wakeups = stats_of(hub).owner_wakeups;
	uint64_t window_ns;

	sleep_ns(60 * MS);
	wakeups = stats_of(hub).owner_wakeups - wakeups;
	used_ns = thread_cpu_ns(owner) - used_ns;
	window_ns = monotonic_ns() - begun_ns;
	expect_cmp(wakeups, <=, may_nap ? naps_max(window_ns) : 0);
	expect_cmp(used_ns, <, window_ns / 2);
}

void owner_rests(struct timerhub *hub)
{
	/*
	 * makes the owner look now at the entries of cancelled timers, for which it would wake once
	 */
	timerhub_queue_close(queue_open(hub));
	(void)stats_settled(hub);
	watch_owner(hub, false);
}

void owner_only_naps(struct timerhub *hub)
{
	watch_owner(hub, true);
}
