/* SPDX-License-Identifier: MIT */
/* A directory on a real disk for each measurement: in $TMPDIR, or in /var/tmp. */
#ifndef BENCH_FOLDER_H
#define BENCH_FOLDER_H

#include <stdbool.h>
#include <sys/types.h>

/* Make an empty folder for this process. Ends the measurement if that fails. */
const char *folder_make(void);

/* Remove the folder of an ended process, if there is one. */
void folder_remove(pid_t process);

/* Drop the kernel's cache of the folder's files, which must be synced. */
void folder_drop_caches(void);

/* Is the folder in memory, so that syncs cost nothing? Warns once on standard error. */
bool folder_is_memory(void);

#endif
