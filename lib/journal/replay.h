/* SPDX-License-Identifier: MIT */
/*
 * Reads all segments in order, rebuilds the tasks, and prepares the log for appends: for
 * timerhub_journal_open() and the tool.
 */
#ifndef JOURNAL_REPLAY_H
#define JOURNAL_REPLAY_H

#include "journal/agenda.h"
#include "journal/log.h"
#include "journal/tasks.h"

enum replay_mode {
	/* Cut off a torn tail and remove leftover files, but refuse a damaged journal. */
	REPLAY_OPEN,
	REPLAY_VERIFY, /* change no file, and refuse a damaged journal */
	REPLAY_SALVAGE /* change no file, and read good records behind damage */
};

struct replay {
	struct log log;
	struct tasks tasks;
	struct agenda agenda; /* all recovered tasks that are not parked, by due_ns */
	uint64_t records;     /* number of good records in all segments */
	bool has_watermark;   /* the watermark's file exists, so the journal must have a segment */
	uint64_t watermark;   /* the watermark: sequence number up to which the log was stable */
	/* Sequence number of the last record of the last transaction that was found whole. */
	uint64_t whole_to;
	uint64_t oldest; /* number of the oldest segment of the log */
	/* Largest value of the field `stable` in all good records so far. */
	uint64_t vouched;
	/* Offset in the segment that was read last; all records before this offset were stable. */
	uint64_t doubt_offset;
	/* between the last good record and the zeros at the end */
	uint64_t torn_bytes;
	uint64_t ahead_bytes;   /* number of zero bytes at the end of the last segment */
	uint64_t lost_bytes;    /* number of bytes that salvage skipped, including torn bytes */
	uint64_t leftovers;     /* number of segment files older than `oldest` */
	uint64_t fault_segment; /* segment of the first fault, or the last segment if no fault */
	/* of the first fault, or the end of the last good record */
	uint64_t fault_offset;
	const char *fault; /* description of the first fault, or NULL */
};

void replay_init(struct replay *replay, struct disk *disk, uint64_t segment_bytes);

/*
 * After replay_init(); a failure leaves partial results. 0, -EBADMSG, -EOPNOTSUPP, -ENOMEM, or a
 * disk's error. Without a segment REPLAY_OPEN begins one; REPLAY_VERIFY reads again where another
 * process may be writing.
 */
int replay_run(struct replay *replay, enum replay_mode mode);

void replay_fini(struct replay *replay);

#endif
