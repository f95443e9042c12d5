/* SPDX-License-Identifier: MIT */
/*
 * Compaction copies the live tasks of the first segment to the end of the log and drops the
 * segment. Then the next segment is the first. The leader compacts.
 *
 * Let L be the bytes of live tasks, and S the size of a segment. Compaction begins when the disk
 * holds more than 1.5 L + S, a step with every batch. If the disk holds more than 2 L + S, changes
 * wait for compaction. A segment is written before another is dropped, so the disk holds at most 2
 * L + 2 S. One round copies L bytes. A round frees at least L/2, or S/4 if reserved room and not
 * records fill the disk.
 *
 * The compactor reads the first segment only for ids, and copies tasks from memory. If the segment
 * cannot be read, the compactor scans all tasks for those in that segment. So a bad sector goes
 * with its segment.
 */
#ifndef JOURNAL_COMPACTOR_H
#define JOURNAL_COMPACTOR_H

#include <stdbool.h>

#include "journal/lock.h"
#include "journal/log.h"
#include "journal/reader.h"
#include "journal/tasks.h"

enum compactor_state {
	COMPACTOR_IDLE,
	COMPACTOR_READS, /* the reader is open */
	COMPACTOR_SCANS, /* the segment cannot be read, so the table is scanned */
};

struct compactor {
	struct log *log;
	struct lock *lock; /* protects the tasks */
	struct tasks *tasks;
	unsigned state;       /* enum compactor_state */
	unsigned pauses;      /* backups in progress, so no segment is dropped. Under the lock */
	bool wanted;          /* compaction would have freed room at the last check */
	bool blocked;         /* the log refused; no compaction until a batch has been written */
	struct reader reader; /* number of the log's first segment */
	uint32_t bucket;      /* bucket of the table to scan next */
	uint8_t *buffer;      /* copies not yet written */
	size_t used;
	size_t capacity;
	uint64_t copied_bytes;
	uint64_t dropped; /* segments dropped */
	uint64_t healed;  /* dropped segments that could not be read */
};

void compactor_init(struct compactor *compactor, struct log *log, struct lock *lock,
                    struct tasks *tasks);

/* Returns whether compaction would free room and nothing prevents it. */
bool compactor_is_due(struct compactor *compactor);

/*
 * Compact until the bound holds, after a batch of `batch_bytes`. If `early`, also do one step when
 * compaction is due. Returns whether anything was done.
 */
bool compactor_work(struct compactor *compactor, size_t batch_bytes, bool early);

void compactor_fini(struct compactor *compactor);

#endif
