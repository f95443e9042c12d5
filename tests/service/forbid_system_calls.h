/* SPDX-License-Identifier: MIT */
/* Defines a seccomp filter by which a test proves that a call makes no system call. */
#ifndef SERVICE_FORBID_SYSTEM_CALLS_H
#define SERVICE_FORBID_SYSTEM_CALLS_H

#include <seccomp.h>

#include "harness.h"

/*
 * The kernel kills the process at the next system call but exit_group(), clock_gettime() and `but`,
 * such as SCMP_SYS(getcpu). A sanitizer makes calls of its own: then only those in `forbidden`
 * kill.
 */
static inline void forbid_system_calls(int but)
{
	const int allowed[] = { SCMP_SYS(exit_group), SCMP_SYS(clock_gettime), but };
	static const int forbidden[] = {
		SCMP_SYS(write),           SCMP_SYS(writev),        SCMP_SYS(read),
		SCMP_SYS(readv),           SCMP_SYS(ppoll),         SCMP_SYS(poll),
		SCMP_SYS(timerfd_settime), SCMP_SYS(io_uring_enter)
	};
	uint32_t kill = SCMP_ACT_KILL_PROCESS;
	scmp_filter_ctx filter = seccomp_init(sanitized() ? SCMP_ACT_ALLOW : kill);

	expect(filter);
	for (unsigned i = 0; !sanitized() && i < COUNT_OF(allowed); i++)
		expect_eq(seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0), 0);
	for (unsigned i = 0; sanitized() && i < COUNT_OF(forbidden); i++)
		expect_eq(seccomp_rule_add(filter, kill, forbidden[i], 0), 0);
	expect_eq(seccomp_load(filter), 0);
}

#endif
