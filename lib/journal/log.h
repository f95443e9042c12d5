/* SPDX-License-Identifier: MIT */
/*
 * The log is a list of segments. Records are appended to the last segment, and compaction drops the
 * first. The log also has the watermark, which says up to where it is stable, and the spare room
 * for records that end tasks. The leader calls, or the thread in open. Recovery fills in the struct
 * (replay.c).
 *
 * If the disk refuses a write, the log cuts the bytes off before the call returns. A failed sync,
 * EIO, and any other error than a lack of room are final: the contents of the disk are unknown, so
 * the log writes no more.
 *
 * Zeros are written ahead of the records: a sync of bytes written over others has no new size and
 * no new blocks of the file to bring to the disk with them.
 */
#ifndef JOURNAL_LOG_H
#define JOURNAL_LOG_H

#include "journal/disk.h"
#include "journal/spare.h"

/* A segment being made; it becomes one by being renamed, when its header is stable. */
#define LOG_NEW_NAME "segment.new"

struct segment {
	uint64_t number;
	uint64_t bytes; /* written, all of it good */
};

struct log {
	struct disk *disk;
	uint64_t segment_bytes;   /* a segment does not grow beyond this */
	uint64_t stretch_bytes;   /* zeros are written ahead up to multiples of this; 0: none are */
	struct segment *segments; /* by number, without gaps; appends go to the last */
	uint32_t count;
	uint32_t capacity;
	uint32_t salt; /* of the last segment */
	int file;      /* the last segment; -1: none */
	int watermark; /* its file; -1: none */
	struct spare spare;
	uint64_t sequence; /* of the last record; the first has 1 */
	uint64_t stable;   /* of the last record known to be on stable storage */
	uint64_t next_id;  /* the next task's */
	uint64_t bytes;    /* of all segments, with the zeros ahead */
	uint64_t ahead;    /* zeros in the last segment, behind its records */
	uint64_t plain_to; /* the disk refused zeros: none before the last segment is so large */
	uint64_t syncs;    /* of the last segment, with or after a write */
	int failed;        /* 0, or -EIO: the log writes no more */
};

enum log_how {
	LOG_SYNC = 1,  /* return only when the records are stable */
	LOG_SPARE = 2, /* if there is no room, use the spare */
};

/* Where in the log the first record of an append is. */
struct log_position {
	uint64_t segment;
	uint64_t offset;
};

/* An empty log, with no files. */
void log_init(struct log *log, struct disk *disk, uint64_t segment_bytes);

/* The last segment; there must be one. */
struct segment *log_last(struct log *log);

/* Add a segment to the list, as the last. Returns 0 or -ENOMEM. */
int log_add_segment(struct log *log, uint64_t number, uint64_t bytes);

/*
 * Begin a new segment, on stable storage. `oldest` is the first segment number that still counts.
 * Returns 0, -EIO if the log has failed, or an error of the disk that changed nothing.
 */
int log_begin_segment(struct log *log, uint64_t number, uint64_t oldest);

/*
 * Append encoded records; they are sealed in place. They must fit in a segment. `how`: of enum
 * log_how. Returns 0, -EIO if the log has failed, or an error for a lack of room or descriptors
 * that changed nothing.
 */
int log_append(struct log *log, uint8_t *records, size_t bytes, unsigned how,
               struct log_position *ret_position);

/* Does this answer of log_append() say that the disk is full? */
bool log_is_full(int result);

/* Reserve room for `bytes` of records that end tasks. Returns 0 or an error of the disk. */
int log_reserve(struct log *log, uint64_t bytes);

/* Shrink the reserved room to `bytes`, if that frees much. */
void log_release(struct log *log, uint64_t bytes);

/* Returns all bytes on disk: segments, zeros ahead, watermark and spare. */
uint64_t log_disk_bytes(const struct log *log);

/* Make everything written stable. 0; -EIO and failed. */
int log_sync(struct log *log);

/*
 * As log_sync(), and also sync the watermark and cut the zeros off. For the end of a segment and of
 * the log. Returns 0, -EIO if the log has failed, or an error of the disk that changed nothing.
 */
int log_trim(struct log *log);

/*
 * Remove the first segment, which must not be the last. Returns 0, -EIO if the log has failed, or
 * an error of the disk.
 */
int log_drop_first(struct log *log);

/* Close the files, and be empty. */
void log_close(struct log *log);

#endif
