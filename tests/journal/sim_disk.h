/* SPDX-License-Identifier: MIT */
/*
 * A directory on a disk that loses unsynced data in a crash: each dirty sector has its old bytes,
 * its new ones, or new ones up to an offset; a size lies between old and new; each unsynced change
 * of a name is kept or lost.
 */
#ifndef JOURNAL_SIM_DISK_H
#define JOURNAL_SIM_DISK_H

#include <harness.h>
#include <journal/disk.h>

#define SIM_SECTOR 512
/* small for tests that copy the disk at every step; a program may define more */
#ifndef SIM_FILES
#define SIM_FILES 24
#define SIM_FILE_BYTES 16384
#endif
#define SIM_SECTORS (SIM_FILE_BYTES / SIM_SECTOR)
#define SIM_CHANGES 12

struct sim_file {
	bool used;
	uint32_t size, stable_size;
	uint32_t extent; /* all bytes of `now` and `stable` from this index on are zero */
	bool dirty[SIM_SECTORS];
	uint8_t now[SIM_FILE_BYTES];
	uint8_t stable[SIM_FILE_BYTES];
};

struct sim_name {
	char name[DISK_NAME_MAX]; /* name of the file, or "" if the element is free */
	int file;
};

/* Unsynced: `to` is empty for an unlink, `from` for a new file. */
struct sim_change {
	char to[DISK_NAME_MAX];
	char from[DISK_NAME_MAX];
	int file;
};

struct sim_disk {
	struct disk disk;
	struct sim_file *files;
	struct sim_name names[SIM_FILES]; /* names of the files as programs see them now */
	struct sim_name stable_names[SIM_FILES];
	struct sim_change changes[SIM_CHANGES];
	unsigned changes_count;
	unsigned operations; /* number of operations so far that changed the disk */
	unsigned crash_at;   /* number of the operation at which the machine crashes, or 0 */
	unsigned syncs;      /* number of syncs of files so far */
	unsigned sync_fails; /* number of the sync that fails with EIO, or 0 */
	unsigned fail_at;    /* number of the operation that fails with `error`, or 0 */
	int error;
	uint64_t space; /* largest allowed sum of the sizes of all files */
	uint64_t peak;  /* largest sum of the sizes of all files so far */
	/* while zero_opens is not 0, these bytes read as zeros in every file */
	uint64_t zero_from, zero_to;
	unsigned zero_opens;             /* each open of a file decrements it, down to 0 */
	uint64_t bad_from, bad_to;       /* bytes whose read fails with EIO */
	const struct sim_file *bad_file; /* file with the bad bytes, or NULL for all files */
	bool dead;
	const unsigned *watch; /* NULL, or a flag copied to `watched` when the machine crashes */
	bool watched;
	bool locked;
	struct dice dice;
};

void sim_open(struct sim_disk *sim, uint64_t seed);
void sim_close(struct sim_disk *sim);

/* A random possible state after a crash now, open. */
void sim_crash(struct sim_disk *image, const struct sim_disk *sim, struct dice *dice);

/* After a kill of the process alone: nothing is lost, unsynced data stays unsynced. */
void sim_survive(struct sim_disk *image, const struct sim_disk *sim);

/* In the copy all is stable. */
void sim_copy(struct sim_disk *image, const struct sim_disk *sim);

/* Or NULL. The caller may change `now` and `stable` below the size. */
struct sim_file *sim_find(struct sim_disk *sim, const char *name);

uint64_t sim_bytes(const struct sim_disk *sim);

/* Create a file with these bytes, which are stable. */
void sim_plant(struct sim_disk *sim, const char *name, const void *bytes, size_t count);

#endif
