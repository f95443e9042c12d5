/* SPDX-License-Identifier: MIT */
/*
 * Appends records to the last segment file of the log, and drops the first segment for compaction.
 * The log also has the watermark, and the spare room for records that end tasks. The watermark says
 * up to which record the log is stable. Only the leader and the thread that opens the journal use
 * the log. Recovery (replay.c) fills in struct log.
 *
 * If the disk refuses a write, the log cuts off the written bytes before the call returns. After a
 * failed sync, or an error that log_answer() does not list, the contents of the disk are unknown.
 * The log then never writes again.
 *
 * The log writes zeros behind the last record, and later overwrites the zeros with records. The
 * sync of a record that overwrites zeros need not write a new file size or new blocks.
 */
#ifndef JOURNAL_LOG_H
#define JOURNAL_LOG_H

#include "journal/disk.h"
#include "journal/disk_reserve.h"

/* The name of a new segment's file, until the header is stable and the file is renamed. */
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
	/* After a refused write, the log writes no zeros until the last segment has this size. */
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
 * Begin a new segment, with stable header and name. `oldest` is the number of the log's oldest
 * segment. Returns 0 or an error. After an error other than -EIO, the log is unchanged.
 */
int log_begin_segment(struct log *log, uint64_t number, uint64_t oldest);

/*
 * Seal encoded records in place, and append them to the log. The records must fit in a segment. The
 * argument `how` has bits of enum log_how. Returns 0, or -EIO if the log has failed. If room,
 * memory or descriptors are lacking, or the file system is read-only, returns an error and adds no
 * record.
 */
int log_append(struct log *log, uint8_t *records, size_t bytes, unsigned how,
               struct log_position *ret_position);

/* Returns whether a result of log_append() means that the disk is full. */
bool log_is_full(int result);

/* Reserve room in the spare for `bytes` of records. Returns 0 or an error of the disk. */
int log_reserve(struct log *log, uint64_t bytes);

/* Shrink the spare to about `bytes`, if the spare is much larger. */
void log_release(struct log *log, uint64_t bytes);

/* Returns the bytes of all files of the journal: segments with zeros ahead, watermark and spare. */
uint64_t log_disk_bytes(const struct log *log);

/* Make all written records stable. Returns 0, or -EIO if the log has failed. */
int log_sync(struct log *log);

/*
 * Cut the zeros off the last segment, make its records stable, and sync the watermark. Call
 * log_trim() at the end of a segment or of the log. Returns 0, or an error of the disk. After an
 * error other than -EIO, the log is unchanged.
 */
int log_trim(struct log *log);

/*
 * Remove the first segment of the log. The log must have a second segment, which becomes the first.
 * Returns 0, -EIO if the log has failed, or an error of the disk.
 */
int log_drop_first(struct log *log);

/* Close the log's files and empty struct log. */
void log_close(struct log *log);

#endif
