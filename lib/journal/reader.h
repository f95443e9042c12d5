/* SPDX-License-Identifier: MIT */
/*
 * Reads a segment from its beginning, record by record, for recovery, compaction and the tool
 * timerhub-journal. Only one thread at a time uses a reader.
 */
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
 * Open a segment and read its header. If `write` is set, open the file for reading and writing. The
 * caller can then keep the open file after a reader_release(). If `forgiving` is set, treat
 * unreadable bytes as zeros. Returns 0 or an error of the disk. Returns -EBADMSG if the header is
 * bad or belongs to another segment, and -EOPNOTSUPP if the header has another version.
 */
int reader_open(struct reader *reader, struct disk *disk, uint64_t number, bool write,
                bool forgiving);

/*
 * Derive the segment's salt and first sequence from its records, after a reader_open() that
 * returned -EBADMSG. Returns 1 and fills in reader->header, returns 0 if no record is good, or
 * returns an error of the disk.
 */
int reader_guess_header(struct reader *reader, uint64_t number);

/* The reader may be zeroed, or its reader_open() may have failed. */
void reader_close(struct reader *reader);

/*
 * Returns the descriptor of the segment's file, which then belongs to the caller. The caller must
 * still close the reader.
 */
int reader_release(struct reader *reader);

/*
 * Read the next record. The record's data is valid until the next call that uses the reader.
 * Returns 1 for a record, 0 at the end of the file, or an error of the disk. If there is no good
 * record at reader->offset, returns -EBADMSG and leaves reader->offset unchanged.
 */
int reader_next(struct reader *reader, struct record *ret_record);

/*
 * Returns 1 or 0, the result of record_is_foreign() for the bytes at reader->offset, or an error of
 * the disk. Leaves reader->offset unchanged.
 */
int reader_is_foreign(struct reader *reader);

/*
 * Search the bytes behind a bad record at reader->offset for the next good record header. The
 * sequence number in this header must be at least `from`, and the field `stable` at least
 * `stable_from`. If there is such a header, sets reader->offset to the header and returns 1. If
 * there is no such header, returns 0. May also return an error of the disk.
 */
int reader_search(struct reader *reader, uint64_t from, uint64_t stable_from);

/*
 * Find the first offset, at or behind reader->offset, from which on the file has only zeros.
 * Returns 0 or an error.
 */
int reader_find_zeros(struct reader *reader, uint64_t *ret_offset);

#endif
