/* SPDX-License-Identifier: MIT */
/*
 * Each record, and the watermark, says up to which sequence number the log was stable then. If one
 * behind a bad place says so of it, acknowledged changes are damaged; otherwise an unacknowledged
 * write was interrupted, and the log ends there. Only the last segment can have a torn tail, or
 * zeros, which are cut off likewise: each other was stable before the next began.
 */
#include "journal/torn_tail.h"

#include <errno.h>

#define WRITE_AGAIN_BYTES 4096

int torn_tail_judge(struct reader *reader, uint64_t expected, bool last, const char **ret_fault)
{
	uint64_t at = reader->offset;
	int result = reader_is_foreign(reader);

	if (result < 0)
		return result;
	*ret_fault = "a record that cannot be";
	if (result == 1)
		return -EBADMSG;
	*ret_fault = "a damaged record, with good ones behind it";
	if (!last)
		return -EBADMSG;
	/* with the bad place itself: a good record there may have a later sequence number */
	reader->offset -= RECORD_ALIGN_BYTES;
	result = reader_search(reader, expected, expected);
	reader->offset = at;
	return result == 1 ? -EBADMSG : result;
}

/* Also zeros, which are perhaps not stable: after a crash old bytes could stand there. */
static int torn_tail_cut_file(struct reader *reader)
{
	if (reader->offset == reader->end)
		return 0;
	return reader->disk->ops->truncate(reader->disk, reader->file, reader->offset);
}

/*
 * All of the last segment that no later record says was stable: after a failed sync, reads may
 * return what is not on the disk and what no sync writes.
 */
static int torn_tail_write_again(struct reader *reader, uint64_t at)
{
	const struct disk_ops *ops = reader->disk->ops;
	uint8_t bytes[WRITE_AGAIN_BYTES];

	while (at < reader->offset) {
		uint64_t left = reader->offset - at;
		size_t want = left < sizeof(bytes) ? (size_t)left : sizeof(bytes);
		int64_t done = ops->read(reader->disk, reader->file, bytes, want, at);

		if (done > 0)
			done = ops->write(reader->disk, reader->file, bytes, (size_t)done, at);
		if (done <= 0)
			return done < 0 ? (int)done : -EIO;
		at += (uint64_t)done;
	}
	return 0;
}

int torn_tail_cut(struct log *log, struct reader *reader, uint64_t doubt_offset)
{
	int result = torn_tail_cut_file(reader);

	if (result == 0)
		result = torn_tail_write_again(reader, doubt_offset);
	if (result < 0)
		return result;
	log->salt = reader->header.salt;
	log->file = reader_release(reader);
	result = log->disk->ops->sync(log->disk, log->file);
	if (result == 0)
		result = log->disk->ops->sync_dir(log->disk);
	log->stable = log->sequence;
	return result;
}
