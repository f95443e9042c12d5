/* SPDX-License-Identifier: MIT */
/*
 * Implements the eventcount of eventcount.h by futex(2). No other file of the journal includes
 * linux/futex.h. Every test of a call that blocks also tests the eventcount.
 */
#include "journal/eventcount.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The struct timespec that the kernel expects from the system call SYS_futex. */
struct ticket_timespec {
	long tv_sec;
	long tv_nsec;
};

uint32_t eventcount_number(struct eventcount *eventcount)
{
	return atomic_load_explicit(&eventcount->number, memory_order_acquire);
}

void eventcount_set(struct eventcount *eventcount, uint32_t number)
{
	atomic_store_explicit(&eventcount->number, number, memory_order_release);
}

void eventcount_wake(struct eventcount *eventcount, unsigned count)
{
	int saved_errno = errno;

	(void)syscall(SYS_futex, &eventcount->number, FUTEX_WAKE_PRIVATE,
	              count < INT_MAX ? (int)count : INT_MAX, NULL, NULL, 0);
	errno = saved_errno;
}

void eventcount_wait(struct eventcount *eventcount, uint32_t number, uint64_t timeout_ns)
{
	int saved_errno = errno;
	struct ticket_timespec timeout = {
		.tv_sec = (long)(timeout_ns / 1000000000u),
		.tv_nsec = (long)(timeout_ns % 1000000000u),
	};

	(void)syscall(SYS_futex, &eventcount->number, FUTEX_WAIT_PRIVATE, number,
	              timeout_ns == UINT64_MAX ? NULL : &timeout, NULL, 0);
	errno = saved_errno;
}
