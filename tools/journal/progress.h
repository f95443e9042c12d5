/* SPDX-License-Identifier: MIT */
/* Shows how far a command is that reads or writes much. */
#ifndef JOURNAL_PROGRESS_H
#define JOURNAL_PROGRESS_H

#include <journal/disk.h>

/* From now on every read and write of the disk may tell, until console_work_end(). */
void progress_begin(struct disk *disk, const char *command);

#endif
