/* SPDX-License-Identifier: MIT */
/*
 * Lets the kernel refuse system calls of the whole process from now on, as a sandbox does. It needs
 * libseccomp, so it is not part of the harness's library.
 */
#ifndef TESTS_REFUSE_CALLS_H
#define TESTS_REFUSE_CALLS_H

#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "harness.h"

/*
 * The error that the SIGSYS handler returns in place of a trapped call, and how often the handler
 * has run.
 */
static atomic_int trap_error, trap_count;

static inline void trap_answer(int signal, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;

	(void)signal;
	(void)info;
	trap_count++;
#ifdef __x86_64__
	interrupted->uc_mcontext.gregs[REG_RAX] = -trap_error;
#else
	interrupted->uc_mcontext.regs[0] = (unsigned long)-(long)trap_error;
#endif
}

/*
 * Installs a filter for all threads of the process. If `only` is not NULL, the filter takes only
 * calls whose argument compares as `only` says.
 */
static inline void filter_calls(uint32_t action, int call, const struct scmp_arg_cmp *only)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	expect(filter);
	expect_eq(seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1), 0);
	expect_eq(seccomp_rule_add_array(filter, action, call, only ? 1 : 0, only), 0);
	expect_eq(seccomp_load(filter), 0);
	seccomp_release(filter);
}

static inline void refuse_calls_if(int call, int error, const struct scmp_arg_cmp *only)
{
	filter_calls(SCMP_ACT_ERRNO((uint32_t)error), call, only);
}

static inline void refuse_calls(int call, int error)
{
	refuse_calls_if(call, error, NULL);
}

/*
 * Answers MADV_WIPEONFORK with an error, as old kernels and filters do, or, if that is 0, any
 * advice with success, as some emulators do.
 */
static inline void refuse_wipes(int error)
{
	const struct scmp_arg_cmp wipe = { .arg = 2,
		                           .op = SCMP_CMP_EQ,
		                           .datum_a = MADV_WIPEONFORK };

	refuse_calls_if(SCMP_SYS(madvise), error, error != 0 ? &wipe : NULL);
}

/*
 * Refuses calls like refuse_calls_if(), but the kernel raises SIGSYS, and the handler of the signal
 * makes the error.
 */
static inline void trap_calls_if(int call, int error, const struct scmp_arg_cmp *only)
{
	const struct sigaction answer = { .sa_sigaction = trap_answer, .sa_flags = SA_SIGINFO };

	trap_error = error;
	expect_eq(sigaction(SIGSYS, &answer, NULL), 0);
	filter_calls(SCMP_ACT_TRAP, call, only);
}

#endif
