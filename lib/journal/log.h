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
	uint64_t bytes; /* of its header and good records */
};

struct log {
	struct disk *disk;
	uint64_t segment_bytes; /* a segment's largest size */
	/* zeros are written ahead up to a multiple; 0: none */
	uint64_t stretch_bytes;
	struct segment *segments; /* all segments, in order of number, without gaps */
	uint32_t count;
	uint32_t capacity;
	uint32_t salt; /* of the last segment */
	int file;      /* the last segment, or -1 */
	int watermark; /* its file, or -1 */
	struct disk_reserve spare;
	uint64_t sequence; /* of the last record, from 1 on */
	uint64_t stable;   /* up to which sequence number records are stable */
	uint64_t next_id;  /* of tasks */
	uint64_t bytes;    /* of all segments, with zeros ahead */
	uint64_t ahead;    /* zeros behind the last segment's records */
	/* after a refused write, no zeros until the last segment has this size */
	uint64_t plain_to;
	uint64_t syncs; /* appends with a sync */
	int failed;     /* 0, or -EIO: the log never writes again */
};

/* Of log_append()'s first record. */
struct log_position {
	uint64_t segment;
	uint64_t offset;
};

/* Empty, without files. */
void log_init(struct log *log, struct disk *disk, uint64_t segment_bytes);

/* There must be one. */
struct segment *log_last(struct log *log);

/* To the end of the list. 0 or -ENOMEM. */
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

/* Closes only files, as a forked child does. */
void log_leave(struct log *log);

/* It is empty then. */
void log_close(struct log *log);

#endif
