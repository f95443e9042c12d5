/* SPDX-License-Identifier: MIT */
/*
 * Tells whether this process opened a thing, or is a forked child of the process that did, however
 * it was forked. The kernel zeroes a page in the child, so the answer costs one load. Where the
 * kernel does not do that (before Linux 4.14, in an emulator, or because of a filter), the page is
 * zero from the start, and each question asks for the number of the process.
 */
#ifndef TIMERHUB_FORK_CHECK_H
#define TIMERHUB_FORK_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fork_check {
	uint32_t *is_opener; /* the first word of the page: 1, or 0 in a child; NULL: not open */
	size_t bytes;
	int pid; /* the opener's number if the page cannot answer, else 0 */
};

/*
 * Maps memory of `bytes` bytes, and asks the kernel to zero it in forked children. It is no error
 * if the kernel cannot do that. The first word must not be changed; the caller may use the rest.
 * Returns 0 or a negative errno.
 */
int fork_check_open(struct fork_check *fork_check, size_t bytes);

/*
 * Does the work of fork_check_result() if the first word of the page is 0: either this is a forked
 * child, or the kernel cannot zero pages at a fork. Returns 0, or -EOWNERDEAD in a forked child.
 */
int fork_check_compare_pid(const struct fork_check *fork_check) __attribute__((cold));

/* Returns 0, or -EOWNERDEAD in a forked child. */
static inline int fork_check_result(const struct fork_check *fork_check)
{
	return *fork_check->is_opener != 0 ? 0 : fork_check_compare_pid(fork_check);
}

/*
 * Returns true if this process may use the object (a hub, for example) that this fork_check is part
 * of. A forked child may not use the objects of its parent.
 */
static inline bool fork_check_goes_on(const struct fork_check *fork_check)
{
	return fork_check_result(fork_check) == 0;
}

/*
 * Lets a forked child use its copy of the parent's object (a loop, for example). From now on calls
 * in the child succeed, and only the child's own children are told -EOWNERDEAD.
 */
void fork_check_renew(struct fork_check *fork_check);

/* Unmaps the page that fork_check_open() has mapped, if there is one. */
void fork_check_close(struct fork_check *fork_check);

#endif
