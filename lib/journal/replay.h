/* SPDX-License-Identifier: MIT */
/*
 * Recovers a journal: reads all segments in order, rebuilds the tasks, and prepares the log for
 * appends. Open and the tool timerhub-journal use this module.
 */
#ifndef JOURNAL_REPLAY_H
#define JOURNAL_REPLAY_H

#include "journal/agenda.h"
#include "journal/log.h"
#include "journal/tasks.h"

enum replay_mode {
	REPLAY_OPEN,   /* cut off a torn tail and remove leftover files; refuse damage */
	REPLAY_VERIFY, /* change no file; refuse damage */
	REPLAY_SALVAGE /* change no file, and continue behind damage */
};

struct replay {
	struct log log;
	struct tasks tasks;
	struct agenda agenda; /* all tasks, by due_ns */
	uint64_t records;     /* number of good records */
	bool has_watermark;   /* the watermark's file exists, so segments exist or existed */
	uint64_t watermark;   /* the log was stable up to this sequence number */
	/* Sequence of the last record of the last transaction known to be whole. */
	uint64_t whole_to;
	uint64_t oldest; /* number of the oldest segment of the log */
	/* Sequence up to which some good record says that the log was stable. */
	uint64_t vouched;
	uint64_t doubt_offset; /* offset in the segment; records before it were stable */
	/* Bytes behind the last good record of the last segment, without zeros at the end. */
	uint64_t torn_bytes;
	uint64_t ahead_bytes;   /* zero bytes at the end of the last segment */
	uint64_t lost_bytes;    /* bytes that salvage skipped, including torn bytes */
	uint64_t leftovers;     /* number of segments older than `oldest` */
	uint64_t fault_segment; /* segment of the first fault; without a fault, the last segment */
	/* Offset of the first fault; without a fault, the end of the last good record. */
	uint64_t fault_offset;
	const char *fault; /* description of the first fault; NULL: no fault */
};

void replay_init(struct replay *replay, struct disk *disk, uint64_t segment_bytes);

/*
 * Recover the journal, after replay_init(). If the call fails, `replay` has its partial results.
 * Returns 0, -EBADMSG, -EOPNOTSUPP, -ENOMEM, or an error of the disk. If the directory has no
 * segment, REPLAY_OPEN begins one. REPLAY_VERIFY reads the journal again if a process may be
 * changing the files.
 */
int replay_run(struct replay *replay, enum replay_mode mode);

/* Returns 1 if there is a segment or a watermark, 0 if not, or an error of the disk. */
int replay_find_journal(struct disk *disk);

void replay_fini(struct replay *replay);

#endif
