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
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

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

/* ---- some calls of a kind, the first of which is number 1 ---- */

/*
 * What the handler adds to a call so that the filter lets it through: a sixth argument, or, to
 * io_uring_enter, which has six, the upper half of its descriptor. The kernel ignores both.
 */
#define TRAP_PASSES UINT32_C(0x7472ace5)
#define TRAP_PASSES_FD (UINT64_C(1) << 32)

static atomic_uint trap_from, trap_times, trap_hits;

static inline void trap_refuse_some(int signal, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;
	unsigned number = (unsigned)++trap_count, from = trap_from;
	int before = errno;
#ifdef __x86_64__
	greg_t *registers = interrupted->uc_mcontext.gregs;
	long a[] = { registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
		     registers[REG_R10], registers[REG_R8],  registers[REG_R9] };
	greg_t *answer = &registers[REG_RAX];
#else
	unsigned long long *registers = (void *)interrupted->uc_mcontext.regs;
	long a[] = { (long)registers[0], (long)registers[1], (long)registers[2],
		     (long)registers[3], (long)registers[4], (long)registers[5] };
	unsigned long long *answer = registers;
#endif
	long result = -trap_error;

	(void)signal;
	if (from == 0 || number < from || number - from >= trap_times) {
		if (info->si_syscall == SCMP_SYS(io_uring_enter))
			a[0] |= (long)TRAP_PASSES_FD;
		else
			a[5] = TRAP_PASSES;
		result = syscall(info->si_syscall, a[0], a[1], a[2], a[3], a[4], a[5]);
		result = result < 0 ? -errno : result;
	} else {
		trap_hits++;
	}
	*answer = (__typeof__(*answer))result;
	errno = before;
}

/*
 * Counts calls of up to five arguments, or of io_uring_enter, in all threads. None is refused
 * before refuse_some().
 */
static inline void count_calls(int call)
{
	const struct sigaction answer = { .sa_sigaction = trap_refuse_some,
		                          .sa_flags = SA_SIGINFO };
	const struct scmp_arg_cmp low_fd = { .op = SCMP_CMP_LT, .datum_a = TRAP_PASSES_FD };
	const struct scmp_arg_cmp no_mark = { .arg = 5, .op = SCMP_CMP_NE, .datum_a = TRAP_PASSES };

	expect_eq(sigaction(SIGSYS, &answer, NULL), 0);
	filter_calls(SCMP_ACT_TRAP, call, call == SCMP_SYS(io_uring_enter) ? &low_fd : &no_mark);
}

/* Refuses `times` counted calls. The first of them is the from-th from now on. */
static inline void refuse_some(int error, unsigned from, unsigned times)
{
	trap_error = error;
	trap_count = 0;
	trap_hits = 0;
	trap_times = times;
	trap_from = from;
}

/* Returns how many were refused. */
static inline unsigned refuse_no_more(void)
{
	trap_from = 0;
	return trap_hits;
}

#endif
