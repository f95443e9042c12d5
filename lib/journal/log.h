/* SPDX-License-Identifier: MIT */
/*
 * Appends records to the last segment, drops the first; has the watermark, up to which record the
 * log is stable, and the spare. For the leader and the opener; recovery (replay.c) fills in struct
 * log. What a refused write has left is cut off before the call returns. After a failed sync, or an
 * error that log_answer() does not list, the disk is unknown, and nothing is written any more.
 * Zeros are written ahead of the records: over them a sync needs no new size or blocks.
 */
#ifndef JOURNAL_LOG_H
#define JOURNAL_LOG_H

#include "journal/disk.h"
#include "journal/disk_reserve.h"

/* of a new segment, until its header is stable */
#define LOG_NEW_NAME "segment.new"

struct segment {
	uint64_t number;
	uint64_t bytes; /* bytes of the segment's header and good records */
};

struct log {
	struct disk *disk;
	uint64_t segment_bytes; /* largest size of a segment */
	/* The log writes zeros ahead up to a multiple of stretch_bytes; 0: no zeros. */
	uint64_t stretch_bytes;
	struct segment *segments; /* all segments, in order of number, without gaps */
	uint32_t count;
	uint32_t capacity;
	uint32_t salt; /* salt of the last segment */
	int file;      /* descriptor of the last segment, or -1 */
	int watermark; /* descriptor of the watermark's file, or -1 */
	struct disk_reserve spare;
	uint64_t sequence; /* sequence number of the last record, counted from 1 */
	uint64_t stable;   /* sequence number up to which records are on stable storage */
	uint64_t next_id;  /* the id of the next task */
	uint64_t bytes;    /* bytes of all segments, including the zeros written ahead */
	uint64_t ahead;    /* number of zero bytes in the last segment, behind its records */
	/* after a refused write, no zeros until the last segment has this size */
	uint64_t plain_to;
	uint64_t syncs; /* number of appends that ended with a sync */
	int failed;     /* 0, or -EIO after a failure. The log then never writes again. */
};

enum log_how {
	LOG_SYNC = 1,  /* log_append() returns only when the records are stable */
	LOG_SPARE = 2, /* if the disk has no room, log_append() uses the spare */
};

/* The segment and the offset at which log_append() has written its first record. */
struct log_position {
	uint64_t segment;
	uint64_t offset;
};

/* Initialize an empty log without files. */
void log_init(struct log *log, struct disk *disk, uint64_t segment_bytes);

/* Returns the last segment of the log. The log must have a segment. */
struct segment *log_last(struct log *log);

/* Add a segment to the end of the log's list. Returns 0 or -ENOMEM. */
int log_add_segment(struct log *log, uint64_t number, uint64_t bytes);

/*
 * With stable header and name; `oldest` is the log's oldest segment. After an error but -EIO the
 * log is unchanged.
 */
int log_begin_segment(struct log *log, uint64_t number, uint64_t oldest);

/*
 * Sealed in place; they must fit in a segment. `how`: bits of enum log_how. -EIO: failed; another
 * error: nothing was added.
 */
int log_append(struct log *log, uint8_t *records, size_t bytes, unsigned how,
               struct log_position *ret_position);

/* Returns whether a result of log_append() means that the disk is full. */
bool log_is_full(int result);

/* In the spare. 0 or a disk's error. */
int log_reserve(struct log *log, uint64_t bytes);

/* Shrink the spare to about `bytes`, if the spare is much larger. */
void log_release(struct log *log, uint64_t bytes);

/* Segments with zeros, watermark and spare. */
uint64_t log_disk_bytes(const struct log *log);

/* Make all written records stable. Returns 0, or -EIO if the log has failed. */
int log_sync(struct log *log);

/*
 * At the end of a segment or the log: no zeros, all stable, watermark synced. After an error but
 * -EIO the log is unchanged.
 */
int log_trim(struct log *log);

/* There must be a second. 0, -EIO (failed), or a disk's error. */
int log_drop_first(struct log *log);

/* Close the log's files and empty struct log. */
void log_close(struct log *log);

#endif
