/* SPDX-License-Identifier: MIT */
/*
 * Compaction: copies what is live in the first segment to the end of the log, and drops that
 * segment; so on round the log. The leader's.
 *
 * With L the bytes of live tasks and S a segment's: cleaning begins when the disk holds more than
 * 1.5 L + S, a little with every batch; beyond 2 L + S changes wait for it. As a segment is written
 * before one is dropped, the disk holds at most 2 L + 2 S. One round copies L and gains at least
 * L/2, or, where the rest of the disk is no records but room kept for them, a quarter of S.
 *
 * The first segment is read for the ids in it only; what is copied comes from memory. If it cannot
 * be read, all tasks are asked whether they are there: so a bad sector goes with its segment.
 */
#ifndef JOURNAL_CLEANER_H
#define JOURNAL_CLEANER_H

#include <stdbool.h>

#include "journal/lock.h"
#include "journal/log.h"
#include "journal/reader.h"
#include "journal/tasks.h"

enum cleaner_state {
	CLEANER_RESTS,
	CLEANER_READS, /* the reader is open */
	CLEANER_ASKS,  /* the segment cannot be read: bucket by bucket */
};

struct cleaner {
	struct log *log;
	struct lock *lock; /* of the tasks */
	struct tasks *tasks;
	unsigned state;       /* enum cleaner_state */
	unsigned pauses;      /* a backup reads the segments: none is dropped. Under the lock */
	bool wanted;          /* there was something to gain, when it was last asked to work */
	bool blocked;         /* the log refused; not again before a batch has been written well */
	struct reader reader; /* of the log's first segment */
	uint32_t bucket;      /* of the tasks, the next one to ask */
	uint8_t *buffer;      /* copies not yet written */
	size_t used;
	size_t capacity;
	uint64_t copied_bytes;
	uint64_t dropped; /* segments */
	uint64_t healed;  /* of those, dropped though they could not be read */
};

void cleaner_init(struct cleaner *cleaner, struct log *log, struct lock *lock, struct tasks *tasks);

/* Is there something to gain, and nothing in the way? */
bool cleaner_is_due(struct cleaner *cleaner);

/*
 * Clean as much as the bound needs, after a batch of so many bytes; or, `early`, a little if that
 * is due. Was anything done?
 */
bool cleaner_work(struct cleaner *cleaner, size_t batch_bytes, bool early);

void cleaner_fini(struct cleaner *cleaner);

#endif
