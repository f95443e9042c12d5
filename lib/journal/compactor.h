/* SPDX-License-Identifier: MIT */
/*
 * Compacts the log: copies the first segment's live tasks to the end of the log, and drops the
 * segment. After the drop, the second segment has become the first. Only the leader compacts.
 *
 * Let L be the bytes of live tasks, and S the size of a segment. If the files hold more than
 * 1.5L+S, compaction does one step with every batch. If the files hold more than 2L+S, changes wait
 * for compaction. Before compaction drops a segment, it writes another segment. Therefore the files
 * hold at most 2L+2S: twice the bytes of the live tasks plus two segments. One round of compaction
 * copies the L bytes of live tasks. If the segments exceed the limit 1.5L+S even without the spare
 * file, a round frees at least half the live bytes. If the files exceed the limit 1.5L+S only
 * because of the spare file, a round frees at least a quarter of a segment.
 *
 * The compactor reads only the ids of tasks from the first segment, and copies the tasks from
 * memory. If the first segment has a bad sector, the compactor scans all tasks in memory for the
 * segment's tasks.
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
	/* The first segment cannot be read, so a scan of the table of ids finds its tasks. */
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

/*
 * Returns whether compaction would free room and can run now. A backup or an error of the disk
 * prevents compaction.
 */
bool compactor_is_due(struct compactor *compactor);

/*
 * Compact after a batch of `batch_bytes`, until the files hold at most 2L+S (twice the live bytes
 * and a segment). If `early` is true and the files hold more than 1.5L+S, first do one step of
 * compaction. Returns whether a step of compaction was done.
 */
bool compactor_work(struct compactor *compactor, size_t batch_bytes, bool early);

void compactor_fini(struct compactor *compactor);

#endif
