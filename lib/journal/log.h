/* SPDX-License-Identifier: MIT */
/*
 * Appends records to the last of a list of segment files, and drops the first segment for
 * compaction. The log also has the watermark, which says up to where the log is stable, and the
 * spare room for records that end tasks. Only the leader or the thread in open uses the log.
 * Recovery fills in the struct (replay.c).
 *
 * If the disk refuses a write, the log cuts the bytes off before the call returns. After a failed
 * sync, or an error that log_answer() does not list, the contents of the disk are unknown, so the
 * log never writes again.
 *
 * The log writes zeros ahead of the records. Records overwrite zeros, so the sync of records need
 * not write a new file size or new blocks.
 */
#ifndef JOURNAL_LOG_H
#define JOURNAL_LOG_H

#include "journal/disk.h"
#include "journal/disk_reserve.h"

/* The name of a new segment until its header is stable and the file is renamed. */
#define LOG_NEW_NAME "segment.new"

struct segment {
	uint64_t number;
	uint64_t bytes; /* bytes written, all of them good */
};

struct log {
	struct disk *disk;
	uint64_t segment_bytes; /* a segment does not grow beyond this */
	/* Zeros are written ahead up to a multiple of this; 0: no zeros. */
	uint64_t stretch_bytes;
	struct segment *segments; /* in order of number, without gaps */
	uint32_t count;
	uint32_t capacity;
	uint32_t salt; /* salt of the last segment */
	int file;      /* descriptor of the last segment; -1: none */
	int watermark; /* descriptor of the watermark's file; -1: none */
	struct disk_reserve spare;
	uint64_t sequence; /* sequence number of the last record; the first record has 1 */
	uint64_t stable;   /* sequence number up to which records are on stable storage */
	uint64_t next_id;  /* the id of the next task */
	uint64_t bytes;    /* bytes of all segments, including the zeros ahead */
	uint64_t ahead;    /* number of zero bytes in the last segment, behind its records */
	/* The disk refused zeros; write none until the last segment has this size. */
	uint64_t plain_to;
	uint64_t syncs; /* number of syncs of the last segment, with or after a write */
	int failed;     /* 0, or -EIO after a failure, and then the log never writes again */
};

enum log_how {
	LOG_SYNC = 1,  /* return only when the records are stable */
	LOG_SPARE = 2, /* if there is no room, use the spare */
};

/* The place in the log of the first record of an append. */
struct log_position {
	uint64_t segment;
	uint64_t offset;
};

/* Make an empty log, with no files. */
void log_init(struct log *log, struct disk *disk, uint64_t segment_bytes);

/* Returns the last segment, which must exist. */
struct segment *log_last(struct log *log);

/* Add a segment to the list, as the last. Returns 0 or -ENOMEM. */
int log_add_segment(struct log *log, uint64_t number, uint64_t bytes);

/*
 * Begin a new segment, on stable storage. `oldest` is the first segment number that still counts.
 * Returns 0, -EIO if the log has failed, or an error of the disk that changed nothing.
 */
int log_begin_segment(struct log *log, uint64_t number, uint64_t oldest);

/*
 * Append encoded records, and seal them in place. The records must fit in a segment. The argument
 * `how` has bits of enum log_how. Returns 0, -EIO if the log has failed, or an error for a lack of
 * room or descriptors that changed nothing.
 */
int log_append(struct log *log, uint8_t *records, size_t bytes, unsigned how,
               struct log_position *ret_position);

/* Returns whether this result of log_append() means that the disk is full. */
bool log_is_full(int result);

/* Reserve room for `bytes` of records that end tasks. Returns 0 or an error of the disk. */
int log_reserve(struct log *log, uint64_t bytes);

/* Shrink the reserved room to `bytes`, if that frees much. */
void log_release(struct log *log, uint64_t bytes);

/* Returns all bytes on disk: segments, zeros ahead, watermark and spare. */
uint64_t log_disk_bytes(const struct log *log);

/* Make all written records stable. Returns 0, or -EIO, and then the log has failed. */
int log_sync(struct log *log);

/*
 * At the end of a segment or of the log, call log_sync(), sync the watermark, and cut the zeros
 * off. Returns 0, -EIO if the log has failed, or an error of the disk that changed nothing.
 */
int log_trim(struct log *log);

/*
 * Remove the first segment, which must not be the last. Returns 0, -EIO if the log has failed, or
 * an error of the disk.
 */
int log_drop_first(struct log *log);

/* Close the files and empty the log. */
void log_close(struct log *log);

#endif
