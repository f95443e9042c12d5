/* SPDX-License-Identifier: MIT */
/*
 * The write-ahead log: its segments, the watermark, up to which record it is stable, and the spare.
 * The leader's and the opener's; recovery (replay.c) fills it in, log_append.c writes records.
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

/* Segments with zeros, watermark and spare. */
uint64_t log_disk_bytes(const struct log *log);

/* Nothing is written any more. Returns -EIO. */
int log_fail(struct log *log);

/* 0 or the disk's error. */
int log_write_all(struct log *log, int file, const uint8_t *bytes, size_t count, uint64_t offset);

/* There must be a second. 0, -EIO (failed), or a disk's error. */
int log_drop_first(struct log *log);

/* Close the log's files and empty struct log. */
void log_close(struct log *log);

#endif
