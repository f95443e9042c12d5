/* SPDX-License-Identifier: MIT */
/*
 * The log: segments in order, of which the last is written to and the first may be dropped; the
 * mark that says how far it is stable; and the spare room for the ends of tasks. The journal's
 * leader calls, or the thread that opens it. Recovery fills it in (replay.c).
 *
 * A write that the disk refuses leaves no trace: its bytes are cut off again before the caller is
 * told. A sync that fails, EIO, and any answer that does not tell lack of room are final: what the
 * disk holds is unknown, so nothing more is written.
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
	struct segment *segments; /* by number, without gaps; the last one is written to */
	uint32_t count;
	uint32_t capacity;
	uint32_t salt; /* of the last segment */
	int file;      /* the last segment; -1: none */
	int mark;      /* the file of the mark; -1: none */
	struct spare spare;
	uint64_t sequence; /* of the last record; the first has 1 */
	uint64_t stable;   /* of the last record known to be on stable storage */
	uint64_t next_id;  /* the next task's */
	uint64_t bytes;    /* of all segments, and what is ahead */
	uint64_t ahead;    /* zeros in the last segment, behind its records */
	uint64_t plain_to; /* the disk refused zeros: none before the last segment is so large */
	uint64_t syncs;    /* of the last segment, with or after a write */
	int failed;        /* 0 or -EIO: nothing is written any more */
};

enum log_how {
	LOG_SYNC = 1,  /* return only when the records are stable */
	LOG_SPARE = 2, /* if there is no room, use the spare */
};

/* Where in the log the first record of an append is. */
struct log_place {
	uint64_t segment;
	uint64_t offset;
};

/* An empty log, with no files. */
void log_init(struct log *log, struct disk *disk, uint64_t segment_bytes);

/* The last segment; there must be one. */
struct segment *log_last(struct log *log);

/* Note a segment after the last one. 0 or -ENOMEM. */
int log_add_segment(struct log *log, uint64_t number, uint64_t bytes);

/*
 * Begin a new segment, on stable storage. `oldest`: the first number that still counts. 0; -EIO and
 * failed; else from the disk, with nothing changed.
 */
int log_begin_segment(struct log *log, uint64_t number, uint64_t oldest);

/*
 * Append encoded records; they are sealed in place. They must fit in a segment. `how`: of enum
 * log_how. 0; -EIO and failed; else from the disk, for lack of room or descriptors, with nothing
 * changed.
 */
int log_append(struct log *log, uint8_t *records, size_t bytes, unsigned how,
               struct log_place *ret_place);

/* Does this answer of log_append() say that the disk is full? */
bool log_is_full(int result);

/* Keep room for `bytes` that end tasks. 0; else from the disk, which refuses. */
int log_reserve(struct log *log, uint64_t bytes);

/* Give back the room that is kept beyond what `bytes` that end tasks need, if it is much. */
void log_release(struct log *log, uint64_t bytes);

/* Returns all that is on disk: segments, zeros ahead, mark and spare. */
uint64_t log_disk_bytes(const struct log *log);

/* Make everything written stable. 0; -EIO and failed. */
int log_sync(struct log *log);

/*
 * As log_sync(), with the mark and with no zeros ahead: for the end of a segment, and of the log.
 * 0; -EIO and failed; else from the disk, with nothing changed.
 */
int log_trim(struct log *log);

/* Remove the first segment; there must be another. 0; -EIO and failed; else from the disk. */
int log_drop_first(struct log *log);

/* Close the files, and be empty. */
void log_close(struct log *log);

#endif
