/* SPDX-License-Identifier: MIT */
/*
 * The three files of a database, as files: whether they are still the same, the room and the sync
 * of the WAL, who writes, and whose turn it is to write.
 */
#ifndef TIMERHUB_STORE_FILES_H
#define TIMERHUB_STORE_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

enum { FILE_DATABASE, FILE_WAL, FILE_SHM, FILES };

struct files {
	char *names[FILES];
	struct stat found[FILES]; /* device and inode of each at the open */
	int wal_fd, shm_fd;
};

/* Opens the files. `path` is SQLite's full name of the database, whose -wal and -shm exist. */
int files_open(struct files *files, const char *path);
void files_close(struct files *files);

/*
 * Returns whether the files are still those of the open, because SQLite would go on to write to
 * files that were removed.
 */
bool files_are_there(const struct files *files);
bool files_are_of(const struct files *files, const char *database);

/*
 * Waits until no other handle has the turn to write, in this process or another, at most until
 * `deadline_ns` on CLOCK_MONOTONIC. Without the turn a writer may go on all the same, because only
 * SQLite's own lock excludes others.
 */
void files_take_turn(const struct files *files, uint64_t deadline_ns);
void files_give_turn(const struct files *files);

/* Returns whether any connection, in this process or another, holds the WAL's write lock. */
bool files_is_writing(const struct files *files);

/* Returns a process that holds one of the WAL's read locks, or 0. */
int files_reader(const struct files *files);

/*
 * Writes zeros at the end of the WAL, whose frames never look like zeros, up to the room that it
 * should have, and at the end of the -shm, up to what SQLite needs for so many frames. The caller
 * holds the write lock. A full disk just gives it less.
 */
bool files_have_room(const struct files *files);
void files_make_room(const struct files *files, uint32_t frame_bytes);

uint64_t files_wal_bytes(const struct files *files);
int files_sync(const struct files *files);

/* Returns whether the disk has less room than puts may use. `wal_bytes` of the WAL are in use. */
bool files_disk_is_low(const struct files *files, uint64_t wal_bytes);

/* Sleeps, and is no cancellation point. */
void files_nap(uint64_t ns);

#endif
