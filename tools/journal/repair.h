/* SPDX-License-Identifier: MIT */
/* Repairs a damaged journal. The repair keeps every task that can be read. */
#ifndef JOURNAL_REPAIR_H
#define JOURNAL_REPAIR_H

#include <journal/disk.h>

struct repair_report {
	bool was_whole;      /* the journal had no damage except perhaps a torn tail */
	uint32_t tasks;      /* number of live tasks after the repair */
	uint64_t lost_bytes; /* number of bytes that could not be read */
};

/*
 * Lock the journal and repair it. Returns 0, or a negative errno of the disk. If a process
 * has the journal open, returns -EBUSY, and the journal is unchanged.
 */
int repair_run(struct disk *disk, struct repair_report *ret_report);

#endif
