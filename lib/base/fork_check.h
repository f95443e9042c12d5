/* SPDX-License-Identifier: MIT */
/*
 * Tells the opener's process from a forked child, however made: the kernel zeroes a page in it, so
 * the answer is one load. Where a kernel (before Linux 4.14), emulator or filter does not, the page
 * is zero from the start, and each question asks for the process's number.
 */
#ifndef TIMERHUB_FORK_CHECK_H
#define TIMERHUB_FORK_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fork_check {
	uint32_t *is_opener; /* first word of the page, 1 or 0; NULL: not open */
	size_t bytes;
	int pid; /* of the opener; 0: only the page answers */
};

/* A page of `bytes`, else zero. 0, or mmap()'s negative errno. */
int fork_check_open(struct fork_check *fork_check, size_t bytes);

/* 0, or -EOWNERDEAD in a child. */
int fork_check_compare_pid(const struct fork_check *fork_check) __attribute__((cold));

/* The same, as a call's last step: no more registers where the page answers. */
static inline int fork_check_result(const struct fork_check *fork_check)
{
	return *fork_check->is_opener != 0 ? 0 : fork_check_compare_pid(fork_check);
}

static inline bool fork_check_goes_on(const struct fork_check *fork_check)
{
	return fork_check_result(fork_check) == 0;
}

/* In a child: it is the opener from now on, and its own children are told. */
void fork_check_renew(struct fork_check *fork_check);

void fork_check_close(struct fork_check *fork_check); /* if it is open */

#endif
