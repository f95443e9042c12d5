/* SPDX-License-Identifier: MIT */
/* Shows the progress of a command that reads or writes many bytes. */
#ifndef JOURNAL_PROGRESS_H
#define JOURNAL_PROGRESS_H

#include <journal/disk.h>

/* From now on, until console_work_end(), each read and write of the disk may print the progress. */
void progress_begin(struct disk *disk, const char *command);

#endif
