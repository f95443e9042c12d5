/* SPDX-License-Identifier: MIT */
/*
 * Recovery: reads all segments in order and leaves the log ready to be written to and the tasks as
 * they were. At open, and for the tool.
 */
#ifndef JOURNAL_REPLAY_H
#define JOURNAL_REPLAY_H

#include "journal/agenda.h"
#include "journal/log.h"
#include "journal/tasks.h"

enum replay_mode {
	REPLAY_OPEN,   /* cuts a torn end, removes leftovers; refuses damage */
	REPLAY_LOOK,   /* changes nothing; refuses damage */
	REPLAY_SALVAGE /* changes nothing, and goes on behind damage */
};

struct replay {
	struct log log;
	struct tasks tasks;
	struct agenda agenda;   /* of all tasks, by due_ns */
	uint64_t records;       /* good ones */
	bool has_mark;          /* the file of the mark is there: so are, or were, segments */
	uint64_t marked;        /* up to this sequence the mark says that the log was stable */
	uint64_t whole_to;      /* the fact that the record of this sequence ends is whole */
	uint64_t oldest;        /* the segments before this number no longer count */
	uint64_t vouched;       /* up to this sequence a good record says that it was stable */
	uint64_t doubt_offset;  /* in the segment being read: records before it are vouched for */
	uint64_t torn_bytes;    /* behind the last good record of the last segment, but ... */
	uint64_t ahead_bytes;   /* ... for the zeros at its end */
	uint64_t lost_bytes;    /* salvage: bytes passed over, the torn ones included */
	uint64_t leftovers;     /* segments that no longer count */
	uint64_t fault_segment; /* where the first fault is, or the last segment ... */
	uint64_t fault_offset;  /* ... and the end of its last good record */
	const char *fault;      /* what is wrong there; NULL: nothing */
};

void replay_init(struct replay *replay, struct disk *disk, uint64_t segment_bytes);

/*
 * On what replay_init() left; `replay` holds what was found also when this fails. 0; -EBADMSG,
 * -EOPNOTSUPP; -ENOMEM; else from the disk. A directory that is no journal yet has no segment, and
 * REPLAY_OPEN begins one. REPLAY_LOOK looks again at what a process may just be changing.
 */
int replay_run(struct replay *replay, enum replay_mode mode);

/* Is there a segment, or a mark? 1 or 0; else from the disk. */
int replay_find_journal(struct disk *disk);

void replay_fini(struct replay *replay);

#endif
