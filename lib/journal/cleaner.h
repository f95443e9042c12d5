/* SPDX-License-Identifier: MIT */
/*
 * Compaction: copies what is live in the first segment to the end of the log, and drops that
 * segment; so on round the log. The writer's.
 *
 * With L the bytes of live tasks and S a segment's: cleaning begins when the log is larger than
 * 1.5 L + S, a little with every batch; beyond 2 L + S changes wait for it. As a segment is written
 * before one is dropped, the log stays within 2 L + 2 S. One round copies L and gains at least L/2.
 */
#ifndef JOURNAL_CLEANER_H
#define JOURNAL_CLEANER_H

#include <stdbool.h>

#include "reader.h"

struct timerhub_journal;

struct cleaner {
	struct reader reader; /* of the log's first segment */
	bool reading;         /* the reader is open */
	bool blocked;         /* it failed; not again before a batch has been written well */
	uint8_t *buffer;      /* copies on their way */
	size_t used;
	size_t capacity;
};

/* Clean a little if it is wanted, or as much as is needed. Was anything done? */
bool cleaner_work(struct timerhub_journal *journal, size_t batch_bytes);

void cleaner_fini(struct cleaner *cleaner);

#endif
