/* SPDX-License-Identifier: MIT */
/* Is this still the process that opened? A word that the kernel zeroes in a forked child. */
#ifndef JOURNAL_LIFE_H
#define JOURNAL_LIFE_H

#include <stdbool.h>
#include <stdint.h>

struct life {
	uint32_t *word; /* NULL: none */
};

int life_open(struct life *life);

static inline bool life_goes_on(const struct life *life)
{
	return *life->word != 0;
}

void life_close(struct life *life); /* fine if there is none */

#endif
