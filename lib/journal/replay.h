/* SPDX-License-Identifier: MIT */
/*
 * Recovers a journal: reads all segments in order, rebuilds the tasks, and prepares the log for
 * appends. Used by open and by the tool.
 */
#ifndef JOURNAL_REPLAY_H
#define JOURNAL_REPLAY_H

#include "journal/agenda.h"
#include "journal/log.h"
#include "journal/tasks.h"

enum replay_mode {
	REPLAY_OPEN,   /* cuts a torn end, removes leftovers; refuses damage */
	REPLAY_VERIFY, /* changes nothing; refuses damage */
	REPLAY_SALVAGE /* changes nothing, and continues behind damage */
};

struct replay {
	struct log log;
	struct tasks tasks;
	struct agenda agenda;   /* all tasks, by due_ns */
	uint64_t records;       /* good records */
	bool has_watermark;     /* the watermark's file exists, so segments exist or existed */
	uint64_t watermark;     /* the log was stable up to this sequence number */
	uint64_t whole_to;      /* the transaction that ends with this sequence is whole */
	uint64_t oldest;        /* the segments before this number no longer count */
	uint64_t vouched;       /* a good record says that the log was stable up to here */
	uint64_t doubt_offset;  /* in this segment: records before it were stable */
	uint64_t torn_bytes;    /* bytes behind the last good record of the last segment ... */
	uint64_t ahead_bytes;   /* ... without the zeros at its end */
	uint64_t lost_bytes;    /* salvage: bytes passed over, the torn ones included */
	uint64_t leftovers;     /* segments that no longer count */
	uint64_t fault_segment; /* where the first fault is, or the last segment ... */
	uint64_t fault_offset;  /* ... and the end of its last good record */
	const char *fault;      /* the fault's name; NULL: none */
};

void replay_init(struct replay *replay, struct disk *disk, uint64_t segment_bytes);

/*
 * Call after replay_init(). `replay` holds the results of a failed run too. Returns 0, -EBADMSG,
 * -EOPNOTSUPP, -ENOMEM, or an error of the disk. If the directory has no segment, REPLAY_OPEN
 * begins one. REPLAY_VERIFY reads again if a process may be changing the files.
 */
int replay_run(struct replay *replay, enum replay_mode mode);

/* Returns 1 if there is a segment or a watermark, 0 if not, or an error of the disk. */
int replay_find_journal(struct disk *disk);

void replay_fini(struct replay *replay);

#endif
