/* SPDX-License-Identifier: MIT */
/*
 * Compaction copies the live tasks of the first segment to the end of the log and drops the
 * segment. After the drop, the next segment is the first segment. The leader compacts.
 *
 * Let L be the bytes of live tasks, and S the size of a segment. When the disk holds more than 1.5
 * L + S, compaction does one step with every batch. If the disk holds more than 2 L + S, changes
 * wait for compaction. A segment is written before another is dropped, so the disk holds at most 2
 * L + 2 S. One round copies L bytes. A round frees at least L/2, or S/4 if reserved room and not
 * records fill the disk.
 *
 * The compactor reads the first segment only for ids, and copies tasks from memory. If the segment
 * cannot be read, the compactor scans all tasks for the tasks of that segment. So a segment with a
 * bad sector can be dropped too.
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
	struct lock *lock; /* the journal's lock, which protects the tasks */
	struct tasks *tasks;
	unsigned state;  /* enum compactor_state */
	unsigned pauses; /* backups in progress, so no segment is dropped. Under the lock */
	bool wanted;     /* at the last check, compaction would have freed room */
	/* The log refused a copy, so compaction waits until a batch has been written. */
	bool blocked;
	struct reader reader; /* reads the first segment of the log */
	uint32_t bucket;      /* index of the bucket of the table of ids to scan next */
	uint8_t *buffer;      /* copies not yet written */
	size_t used;
	size_t capacity;
	uint64_t copied_bytes;
	uint64_t dropped; /* number of segments dropped */
	uint64_t healed;  /* number of dropped segments that could not be read */
};

void compactor_init(struct compactor *compactor, struct log *log, struct lock *lock,
                    struct tasks *tasks);

/* Returns whether compaction would free room and nothing prevents it. */
bool compactor_is_due(struct compactor *compactor);

/*
 * After a batch of `batch_bytes`, compact until the disk holds at most 2 L + S. If `early`, also
 * compact by one step if the disk holds more than 1.5 L + S. Returns whether a step was made.
 */
bool compactor_work(struct compactor *compactor, size_t batch_bytes, bool early);

void compactor_fini(struct compactor *compactor);

#endif
