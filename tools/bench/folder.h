/* SPDX-License-Identifier: MIT */
/* A directory on a real disk for each measurement: in $TMPDIR, or in /var/tmp. */
#ifndef BENCH_FOLDER_H
#define BENCH_FOLDER_H

#include <stdbool.h>
#include <sys/types.h>

/* Make a folder for this process, empty. Ends the measurement if it cannot be made. */
const char *folder_make(void);

/* Remove that of a process which has ended, if it made one. */
void folder_remove(pid_t process);

/* Let the kernel forget what it has cached of the files in ours; they must be synced. */
void folder_drop_caches(void);

/* Are syncs there for nothing? It has been said on standard error, once. */
bool folder_is_memory(void);

#endif
