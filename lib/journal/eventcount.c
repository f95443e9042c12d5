/* SPDX-License-Identifier: MIT */
/* See eventcount.h. The journal's only home of linux/futex.h. Tested by every call that blocks. */
#include "journal/eventcount.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As the kernel's for SYS_futex. */
struct ticket_timespec {
	long tv_sec;
	long tv_nsec;
};

uint32_t ticket_number(struct ticket *ticket)
{
	return atomic_load_explicit(&ticket->number, memory_order_acquire);
}

void ticket_set(struct ticket *ticket, uint32_t number)
{
	atomic_store_explicit(&ticket->number, number, memory_order_release);
}

void ticket_wake(struct ticket *ticket, unsigned count)
{
	int saved_errno = errno;

	(void)syscall(SYS_futex, &ticket->number, FUTEX_WAKE_PRIVATE,
	              count < INT_MAX ? (int)count : INT_MAX, NULL, NULL, 0);
	errno = saved_errno;
}

void ticket_wait(struct ticket *ticket, uint32_t number, uint64_t timeout_ns)
{
	int saved_errno = errno;
	struct ticket_timespec timeout = {
		.tv_sec = (long)(timeout_ns / 1000000000u),
		.tv_nsec = (long)(timeout_ns % 1000000000u),
	};

	(void)syscall(SYS_futex, &ticket->number, FUTEX_WAIT_PRIVATE, number,
	              timeout_ns == UINT64_MAX ? NULL : &timeout, NULL, 0);
	errno = saved_errno;
}
