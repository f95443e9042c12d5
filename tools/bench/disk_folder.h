/* SPDX-License-Identifier: MIT */
/* A directory on a real disk for each measurement: in $TMPDIR, or in /var/tmp. */
#ifndef BENCH_DISK_FOLDER_H
#define BENCH_DISK_FOLDER_H

#include <stdbool.h>
#include <sys/types.h>

/* Make an empty folder for this process. If the folder cannot be made, ends the measurement. */
const char *folder_make(void);

/* Remove the folder of an ended process, if there is one. */
void folder_remove(pid_t process);

/* Drop the kernel's cache of the folder's files, which must be synced. */
void folder_drop_caches(void);

/*
 * Returns whether the folder is in memory, where syncs cost nothing. If it is, warns once on
 * standard error.
 */
bool folder_is_memory(void);

#endif
