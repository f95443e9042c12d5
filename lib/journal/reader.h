/* SPDX-License-Identifier: MIT */
/* A segment, record by record, for recovery, compaction and the tool. One thread at a time. */
#ifndef JOURNAL_READER_H
#define JOURNAL_READER_H

#include "journal/disk.h"
#include "journal/record.h"

struct reader {
	struct disk *disk;
	int file;
	struct segment_header header;
	bool forgiving;  /* unreadable bytes count as zeros */
	uint64_t end;    /* size of the file at reader_open(); later bytes are not read */
	uint64_t offset; /* offset of the next record */
	uint8_t *buffer;
	size_t capacity;
	uint64_t buffer_offset; /* offset of the buffer's first byte in the file */
	size_t buffer_bytes;    /* number of valid bytes in the buffer */
};

/* Write the file name of a segment, such as "0123456789abcdef.seg". */
void segment_name(char name[DISK_NAME_MAX], uint64_t number);

/*
 * With its header. `write`: open for writing too, to be kept by reader_release(); `forgiving`:
 * unreadable bytes are zeros. -EBADMSG: a bad header, or another segment's; -EOPNOTSUPP: another
 * version; or a disk's error.
 */
int reader_open(struct reader *reader, struct disk *disk, uint64_t number, bool write,
                bool forgiving);

/*
 * Salt and first sequence from the records, after -EBADMSG of reader_open(): 1 with reader->header,
 * 0 without a good record, or a disk's error.
 */
int reader_guess_header(struct reader *reader, uint64_t number);

/* The reader may be zeroed, or its reader_open() may have failed. */
void reader_close(struct reader *reader);

/* Closes only the file, as a forked child does. */
void reader_leave(struct reader *reader);

/* The file is the caller's then; the reader must still be closed. */
int reader_release(struct reader *reader);

/*
 * 1 (its data is valid until the next call), 0 at the file's end, a disk's error, or -EBADMSG
 * without moving: no good record here.
 */
int reader_next(struct reader *reader, struct record *ret_record);

/* record_is_foreign() of the bytes here, or a disk's error. Does not move. */
int reader_is_foreign(struct reader *reader);

/*
 * Behind a bad record: the next good header with a sequence from `from` and `stable` from
 * `stable_from` on. 1 and moves there, 0, or a disk's error.
 */
int reader_search(struct reader *reader, uint64_t from, uint64_t stable_from);

/* The first offset from here on behind which the file has only zeros. */
int reader_find_zeros(struct reader *reader, uint64_t *ret_offset);

#endif
