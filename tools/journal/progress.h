/* SPDX-License-Identifier: MIT */
/* Shows the progress of a command of timerhub-journal that reads or writes many bytes. */
#ifndef JOURNAL_PROGRESS_H
#define JOURNAL_PROGRESS_H

#include <journal/disk.h>

/* Print the progress of `command` during reads and writes of the disk, until console_work_end(). */
void progress_begin(struct disk *disk, const char *command);

#endif
