/* SPDX-License-Identifier: MIT */
/*
 * A preloaded library that changes the wall clock of a process, which a time namespace cannot do.
 * The environment variable OTHER_CLOCK names a file with one number, the clock's offset in us.
 * Tests may change the file at any time.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define US_PER_S INT64_C(1000000)
#define NS_PER_US INT64_C(1000)

static const int64_t *other; /* offset in us */

/* Print the error and end the process, because a test without the file is impossible. */
static void fail(const char *what)
{
	perror(what);
	_exit(3);
}

static void __attribute__((constructor)) begin(void)
{
	const char *path = getenv("OTHER_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *map;

	if (fd < 0)
		fail("OTHER_CLOCK");
	map = mmap(NULL, sizeof(*other), PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		fail("mmap");
	(void)close(fd);
	__atomic_store_n(&other, map, __ATOMIC_RELEASE);
}

static int64_t now_us(void)
{
	const int64_t *found = __atomic_load_n(&other, __ATOMIC_ACQUIRE);
	struct timespec now;

	(void)syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
	return now.tv_sec * US_PER_S + now.tv_nsec / NS_PER_US +
	       (found ? __atomic_load_n(found, __ATOMIC_RELAXED) : 0);
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
	int64_t us = now_us();

	(void)zone;
	time->tv_sec = us / US_PER_S;
	time->tv_usec = us % US_PER_S;
	return 0;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	int64_t us;

	if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
		return (int)syscall(SYS_clock_gettime, clock, time);
	us = now_us();
	time->tv_sec = us / US_PER_S;
	time->tv_nsec = us % US_PER_S * NS_PER_US;
	return 0;
}

time_t time(time_t *ret_time)
{
	time_t now = now_us() / US_PER_S;

	if (ret_time)
		*ret_time = now;
	return now;
}
