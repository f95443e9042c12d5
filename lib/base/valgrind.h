/* SPDX-License-Identifier: MIT */
/*
 * Finds out whether valgrind runs the program. It is asked by a client request, which is a row of
 * instructions that do nothing elsewhere, so valgrind's header is not needed.
 * tests/service/test_valgrind.c tests it.
 */
#ifndef TIMERHUB_VALGRIND_H
#define TIMERHUB_VALGRIND_H

#include <stdbool.h>
#include <stdint.h>

#define VALGRIND_RUNS_THIS 0x1001 /* request; the answer is how many valgrinds are nested */

static inline bool valgrind_runs_this(void)
{
	const uint64_t request[6] = { VALGRIND_RUNS_THIS };
	uint64_t answer = 0;

	/*
	 * These instructions change nothing without valgrind: the rotations add up to two whole
	 * turns.
	 */
#if defined(__x86_64__)
	__asm__ volatile(
		"rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\t"
		"xchgq %%rbx, %%rbx"
		: "+d"(answer)
		: "a"(request)
		: "cc", "memory");
#elif defined(__aarch64__)
	__asm__ volatile("mov x3, %0\n\tmov x4, %1\n\t"
	                 "ror x12, x12, #3\n\tror x12, x12, #13\n\tror x12, x12, #51\n\t"
	                 "ror x12, x12, #61\n\torr x10, x10, x10\n\tmov %0, x3"
	                 : "+r"(answer)
	                 : "r"(request)
	                 : "cc", "memory", "x3", "x4");
#endif
	return answer != 0;
}

#endif
