/* SPDX-License-Identifier: MIT */
/*
 * Detects a forked child of the process that opened the journal. The kernel zeroes a word of memory
 * in the child.
 */
#ifndef JOURNAL_FORK_CHECK_H
#define JOURNAL_FORK_CHECK_H

#include <stdbool.h>
#include <stdint.h>

struct fork_check {
	uint32_t *word; /* the word that the kernel zeroes in a child, or NULL if not open */
};

int fork_check_open(struct fork_check *fork_check);

static inline bool fork_check_goes_on(const struct fork_check *fork_check)
{
	return *fork_check->word != 0;
}

void fork_check_close(struct fork_check *fork_check); /* does nothing if fork_check is not open */

#endif
