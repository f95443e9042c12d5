/* SPDX-License-Identifier: MIT */
/*
 * The log: segments in order, of which the last is written to and the first may be dropped. The
 * journal's writer calls, or whoever opens it. Recovery fills it in (replay.c).
 *
 * A write that the disk refuses leaves no trace: its bytes are cut off again before anybody is
 * told. A sync that fails is final: nobody can say what the disk holds, so nothing more is written.
 *
 * Zeros are written ahead of the records: a sync of bytes written over others has no new size and
 * no new blocks of the file to bring to the disk with them.
 */
#ifndef JOURNAL_LOG_H
#define JOURNAL_LOG_H

#include "disk.h"

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
	uint32_t salt;     /* of the last segment */
	int file;          /* the last segment; -1: none */
	uint64_t sequence; /* of the last record; the first has 1 */
	uint64_t stable;   /* of the last record known to be on stable storage */
	uint64_t next_id;  /* the next task's */
	uint64_t bytes;    /* of all segments, and what is ahead */
	uint64_t ahead;    /* zeros in the last segment, behind its records */
	uint64_t plain_to; /* the disk refused zeros: none before the last segment is so large */
	uint64_t syncs;    /* of the last segment, with or after a write */
	int failed;        /* 0 or -EIO: a sync failed */
};

/* Where in the log the first record of an append is. */
struct log_place {
	uint64_t segment;
	uint64_t offset;
};

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
 * Append encoded records; they are sealed in place. `sync`: return only when they are stable. They
 * must fit in a segment. 0; -EIO and failed; else from the disk, with nothing changed.
 */
int log_append(struct log *log, uint8_t *records, size_t bytes, bool sync,
               struct log_place *ret_place);

/* Everything written becomes stable. 0; -EIO and failed. */
int log_sync(struct log *log);

/*
 * The same, and nothing is ahead: for the end of a segment, and of the log. 0; -EIO and failed;
 * else from the disk, with nothing changed.
 */
int log_trim(struct log *log);

/* Remove the first segment; there must be another. 0; -EIO and failed; else from the disk. */
int log_drop_first(struct log *log);

void log_close(struct log *log);

#endif
