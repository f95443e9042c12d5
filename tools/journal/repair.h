/* SPDX-License-Identifier: MIT */
/* Saves what can be read of a damaged journal. */
#ifndef JOURNAL_REPAIR_H
#define JOURNAL_REPAIR_H

#include <journal/disk.h>

struct repair_report {
	bool was_whole;      /* nothing was done but to cut a torn end */
	uint32_t tasks;      /* live now */
	uint64_t lost_bytes; /* of no use */
};

/* Takes the lock. 0; -EBUSY; else from the disk, with the journal as it was. */
int repair_run(struct disk *disk, struct repair_report *ret_report);

#endif
