/* SPDX-License-Identifier: MIT */
/* Repairs a damaged journal: keeps every task that can be read. */
#ifndef JOURNAL_REPAIR_H
#define JOURNAL_REPAIR_H

#include <journal/disk.h>

struct repair_report {
	bool was_whole;      /* the journal was good, and at most a torn tail was cut off */
	uint32_t tasks;      /* live tasks after the repair */
	uint64_t lost_bytes; /* bytes that could not be read */
};

/*
 * Lock the journal and repair it. Returns 0, -EBUSY if a process has it open, or an error of the
 * disk, and then the journal is unchanged.
 */
int repair_run(struct disk *disk, struct repair_report *ret_report);

#endif
