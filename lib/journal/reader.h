/* SPDX-License-Identifier: MIT */
/*
 * Reads a segment from its beginning, record by record, for recovery, compaction and the tool. One
 * thread at a time uses a reader.
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
	uint64_t end;    /* the file's size at open */
	uint64_t offset; /* offset of the next record */
	uint8_t *buffer;
	size_t capacity;
	uint64_t buffer_offset; /* offset in the file of the buffer's first byte */
	size_t buffer_bytes;    /* number of valid bytes in the buffer */
};

/* Write the file name of a segment, such as "0123456789abcdef.seg". */
void segment_name(char name[DISK_NAME_MAX], uint64_t number);

/*
 * Open a segment. If `write` is set, the caller will take the file by reader_release(). If
 * `forgiving` is set, unreadable bytes count as zeros. Returns 0, -EBADMSG or -EOPNOTSUPP for a bad
 * header or a header of another segment, or an error of the disk.
 */
int reader_open(struct reader *reader, struct disk *disk, uint64_t number, bool write,
                bool forgiving);

/*
 * Derive salt and sequence from the records, after an open that returned -EBADMSG. Returns 1 with
 * `header` filled in, 0 if no record is good, or an error of the disk.
 */
int reader_guess_header(struct reader *reader, uint64_t number);

void reader_close(struct reader *reader); /* the reader may be zeroed, or its open have failed */

/* Returns the segment's file, which the caller then owns. The caller still closes the reader. */
int reader_release(struct reader *reader);

/*
 * Read the next record, whose data is valid until the next call. Returns 1 for a record, 0 at the
 * end, or an error of the disk. If there is no good record at reader->offset, returns -EBADMSG and
 * leaves reader->offset unchanged.
 */
int reader_next(struct reader *reader, struct record *ret_record);

/*
 * Returns 1 if the bytes at reader->offset are record_is_foreign(), 0 if not, or an error of the
 * disk. Leaves reader->offset unchanged.
 */
int reader_is_foreign(struct reader *reader);

/*
 * Search from the bad place on for a good header with a sequence of at least `from` and `stable` of
 * at least `stable_from`, and set reader->offset there. Returns 1 if found, 0 if not, or an error
 * of the disk.
 */
int reader_search(struct reader *reader, uint64_t from, uint64_t stable_from);

/*
 * Find the place from which on the file has only zeros, at or behind reader->offset. Returns 0 or
 * an error.
 */
int reader_find_zeros(struct reader *reader, uint64_t *ret_offset);

#endif
