/* SPDX-License-Identifier: MIT */
/*
 * Copies the first segment's live tasks, from memory, to the log's end, and drops it. Only the
 * leader does. With L the bytes of live tasks and S a segment's: beyond 1.5L+S, a step with every
 * batch; beyond 2L+S, changes wait. A segment is written before one is dropped, so the files hold
 * 2L+2S at most. A round copies L; it frees half of L at least, or a quarter of a segment where
 * only the spare exceeds the limit. Where a bad sector hides the ids in the first segment, the
 * tasks in memory are scanned.
 */
#ifndef JOURNAL_COMPACTOR_H
#define JOURNAL_COMPACTOR_H

#include <stdbool.h>

#include "base/lock.h"
#include "journal/log.h"
#include "journal/reader.h"
#include "journal/tasks.h"

enum compactor_state {
	COMPACTOR_IDLE,
	/* A round of compaction is in progress, and reads records of the first segment. */
	COMPACTOR_READS,
	/* unreadable: a scan of the table of ids finds its tasks */
	COMPACTOR_SCANS,
};

struct compactor {
	struct log *log;
	struct lock *lock; /* the journal's lock, which protects the tasks */
	struct tasks *tasks;
	unsigned state; /* a value of enum compactor_state */
	/* Number of backups in progress, for which compaction waits; protected by the lock. */
	unsigned pauses;
	bool wanted; /* compaction would have freed room when it was last checked */
	/* The log refused a copy, so compaction waits until a batch has been written. */
	bool blocked;
	struct reader reader; /* reads the first segment of the log */
	uint32_t bucket;      /* index of the next bucket to scan in the table of ids */
	uint8_t *buffer;      /* copies of records, not yet appended to the log */
	size_t used;
	size_t capacity;
	uint64_t copied_bytes;
	uint64_t dropped; /* number of segments dropped */
	uint64_t healed;  /* number of segments dropped although they could not be read */
};

void compactor_init(struct compactor *compactor, struct log *log, struct lock *lock,
                    struct tasks *tasks);

/* Would it free room, and can it run? A backup or an error of the disk prevents it. */
bool compactor_is_due(struct compactor *compactor);

/*
 * After a batch of `batch_bytes`, until the files hold 2L+S; `early`: a step first if beyond
 * 1.5L+S. Returns whether a step was done.
 */
bool compactor_work(struct compactor *compactor, size_t batch_bytes, bool early);

void compactor_fini(struct compactor *compactor);

#endif
