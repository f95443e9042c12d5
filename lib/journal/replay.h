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
	uint64_t records;     /* good ones */
	bool has_watermark;   /* its file exists, so there must be a segment */
	uint64_t watermark;   /* up to this sequence number the log was stable */
	/* sequence number at the end of the last whole transaction */
	uint64_t whole_to;
	uint64_t oldest; /* the log's oldest segment */
	/* largest `stable` of the good records so far */
	uint64_t vouched;
	/* in the segment read last: all records before were stable */
	uint64_t doubt_offset;
	/* between the last good record and the zeros at the end */
	uint64_t torn_bytes;
	uint64_t ahead_bytes;   /* zeros at the end of the last segment */
	uint64_t lost_bytes;    /* skipped by salvage, with torn ones */
	uint64_t leftovers;     /* segments older than `oldest` */
	uint64_t fault_segment; /* of the first fault, or the last */
	/* of the first fault, or the end of the last good record */
	uint64_t fault_offset;
	const char *fault; /* the first, or NULL */
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
