/* SPDX-License-Identifier: MIT */
/* Is this still the process that opened? A word that the kernel zeroes in a forked child. */
#ifndef JOURNAL_FORK_CHECK_H
#define JOURNAL_FORK_CHECK_H

#include <stdbool.h>
#include <stdint.h>

struct fork_check {
	uint32_t *word; /* NULL: none */
};

int fork_check_open(struct fork_check *fork_check);

static inline bool fork_check_goes_on(const struct fork_check *fork_check)
{
	return *fork_check->word != 0;
}

void fork_check_close(struct fork_check *fork_check); /* fine if there is none */

#endif
