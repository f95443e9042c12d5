/* SPDX-License-Identifier: MIT */
/*
 * Reads a segment from its beginning, record by record. For recovery, compaction and the tool; one
 * thread at a time.
 */
#ifndef JOURNAL_READER_H
#define JOURNAL_READER_H

#include "journal/disk.h"
#include "journal/record.h"

struct reader {
	struct disk *disk;
	int file;
	struct segment_header header;
	bool forgiving;  /* what cannot be read is zeros */
	uint64_t end;    /* the file's size at open */
	uint64_t offset; /* of the record that comes next */
	uint8_t *buffer;
	size_t capacity;
	uint64_t buffer_offset; /* where in the file the buffer begins */
	size_t buffer_bytes;    /* so many of it are filled */
};

/* "0123456789abcdef.seg" */
void segment_name(char name[DISK_NAME_MAX], uint64_t number);

/*
 * 0; -EBADMSG or -EOPNOTSUPP: no good header, or of another segment; else from the disk. `write`:
 * reader_release() will hand the file on. `forgiving`: what cannot be read is zeros.
 */
int reader_open(struct reader *reader, struct disk *disk, uint64_t number, bool write,
                bool forgiving);

/*
 * After an open that said -EBADMSG: learn from the records with what salt they were written, and
 * when. 1: `header` says as much, and reading can begin; 0: no; else from the disk.
 */
int reader_guess_header(struct reader *reader, uint64_t number);

void reader_close(struct reader *reader); /* fine if open failed, or on one that is all zero */

/* The file is the caller's from now on; close the reader all the same. */
int reader_release(struct reader *reader);

/*
 * 1: the next record, whose data is good until the next call; 0: the end; -EBADMSG: no good record
 * at reader->offset, which stays there; else from the disk.
 */
int reader_next(struct reader *reader, struct record *ret_record);

/* Is at reader->offset, which stays, a record_is_foreign()? 1 or 0; else from the disk. */
int reader_is_foreign(struct reader *reader);

/*
 * From the bad place on, look for a good header with a sequence of at least `from` and `stable` of
 * at least `stable_from`, and go there. 1: found; 0: there is none; else from the disk.
 */
int reader_search(struct reader *reader, uint64_t from, uint64_t stable_from);

/*
 * From reader->offset on, which stays, where is there nothing but zeros to the end of the file?
 * 0 or an error.
 */
int reader_find_zeros(struct reader *reader, uint64_t *ret_offset);

#endif
