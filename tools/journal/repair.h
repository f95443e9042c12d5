/* SPDX-License-Identifier: MIT */
/* Repairs a damaged journal, and keeps every task that can be read. */
#ifndef JOURNAL_REPAIR_H
#define JOURNAL_REPAIR_H

#include <journal/disk.h>

struct repair_report {
	bool was_whole;      /* the journal had no damage except perhaps a torn tail */
	uint32_t tasks;      /* live after the repair */
	uint64_t lost_bytes; /* could not be read */
};

/* Returns 0, -EBUSY if a process has the journal open, or another negative errno of the disk. */
int repair_run(struct disk *disk, struct repair_report *ret_report);

#endif
