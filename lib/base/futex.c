/* SPDX-License-Identifier: MIT */
/*
 * Calls futex(2) by syscall(2), which is not a cancellation point. syscall(2) changes errno, so
 * each function here restores it: a signal handler, which may call these functions, must leave
 * errno as it was.
 */
#include "base/futex.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * The timeout as SYS_futex wants it: tv_sec is a long even where the C library's time_t has 64
 * bits.
 */
struct futex_timespec {
	long tv_sec;
	long tv_nsec;
};

void futex_wait(const atomic_u32 *word, uint32_t value, uint64_t timeout_ns)
{
	int saved_errno = errno;
	struct futex_timespec timeout = {
		.tv_sec = (long)(timeout_ns / 1000000000u),
		.tv_nsec = (long)(timeout_ns % 1000000000u),
	};

	/*
	 * The result does not matter: EAGAIN, EINTR and ETIMEDOUT all mean that the caller reads
	 * the word again.
	 */
	(void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value,
	              timeout_ns == UINT64_MAX ? NULL : &timeout, NULL, 0);
	errno = saved_errno;
}

void futex_wake(const atomic_u32 *word, unsigned count)
{
	int saved_errno = errno;

	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count > INT_MAX ? INT_MAX : (int)count,
	              NULL, NULL, 0);
	errno = saved_errno;
}
