/* SPDX-License-Identifier: MIT */
/*
 * Makes a directory for each measurement in $TMPDIR or /var/tmp. The directory should be on a real
 * disk.
 */
#ifndef BENCH_DISK_FOLDER_H
#define BENCH_DISK_FOLDER_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Return the folder of this process, or of the one that had a folder and forked it; make it if
 * there is none. If the folder cannot be made, end the measurement.
 */
const char *folder_make(void);

/* If the ended process had a folder, remove the folder. */
void folder_remove(pid_t process);

/* Drop the folder's files from the kernel's page cache. The files must have been synced. */
void folder_drop_caches(void);

/*
 * Returns whether the folder is in memory. A sync of a folder in memory costs nothing. If the
 * folder is in memory, the function warns once on standard error.
 */
bool folder_is_memory(void);

#endif
