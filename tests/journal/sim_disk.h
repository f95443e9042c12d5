/* SPDX-License-Identifier: MIT */
/*
 * Simulates a directory on a disk that loses unsynced data in a crash. Written sectors are dirty
 * until a sync. A crash leaves each dirty sector with its old bytes, its new bytes, or new bytes up
 * to some offset. A file's size becomes the old size, the new size, or one between. Each unsynced
 * change of a name is kept or lost.
 */
#ifndef JOURNAL_SIM_DISK_H
#define JOURNAL_SIM_DISK_H

#include <harness.h>
#include <journal/disk.h>

#define SIM_SECTOR 512
/*
 * The size of a file. It is small for tests that copy the disk at every step, and a program may
 * choose another.
 */
#ifndef SIM_FILES
#define SIM_FILES 24
#define SIM_FILE_BYTES 16384
#endif
#define SIM_SECTORS (SIM_FILE_BYTES / SIM_SECTOR)
#define SIM_CHANGES 12

struct sim_file {
	bool used;
	uint32_t size, stable_size;
	bool dirty[SIM_SECTORS];
	uint8_t now[SIM_FILE_BYTES];
	uint8_t stable[SIM_FILE_BYTES];
};

struct sim_name {
	char name[DISK_NAME_MAX]; /* the name; "": a free element */
	int file;
};

/*
 * A change of names that is not stable: `to` now names the file, if there is one, and `from` names
 * no file.
 */
struct sim_change {
	char to[DISK_NAME_MAX];
	char from[DISK_NAME_MAX];
	int file;
};

struct sim_disk {
	struct disk disk;
	struct sim_file *files;
	struct sim_name names[SIM_FILES]; /* the names that programs see now */
	struct sim_name stable_names[SIM_FILES];
	struct sim_change changes[SIM_CHANGES];
	unsigned changes_count;
	unsigned operations; /* number of operations so far that change the disk */
	unsigned crash_at;   /* the machine dies at this operation; 0: never */
	unsigned syncs;      /* number of syncs of files so far */
	unsigned sync_fails; /* number of the sync that fails with EIO; 0: none */
	unsigned fail_at;    /* the number of the operation that fails with `error`; 0: none */
	int error;
	uint64_t space; /* most bytes that all files may have together */
	uint64_t peak;  /* most bytes that all files had together, at any write */
	/* In every file, bytes of this range read as zeros, before zero_opens opens. */
	uint64_t zero_from, zero_to;
	unsigned zero_opens;             /* number of opens after which the range reads right */
	uint64_t bad_from, bad_to;       /* these bytes cannot be read: EIO */
	const struct sim_file *bad_file; /* the file with bad bytes; NULL: every file */
	bool dead;
	const unsigned *watch; /* NULL, or a flag to copy to `watched` when the machine dies */
	bool watched;
	bool locked;
	struct dice dice;
};

void sim_open(struct sim_disk *sim, uint64_t seed);
void sim_close(struct sim_disk *sim);

/* Write a possible state after a crash at this moment to `image`, which is open and then alive. */
void sim_crash(struct sim_disk *image, const struct sim_disk *sim, struct dice *dice);

/*
 * Write the state after the death of the process to `image`: nothing is lost, and nothing becomes
 * stable.
 */
void sim_survive(struct sim_disk *image, const struct sim_disk *sim);

/* Make an exact copy, in which everything is stable. */
void sim_copy(struct sim_disk *image, const struct sim_disk *sim);

/* Returns the file of that name, or NULL. */
struct sim_file *sim_find(struct sim_disk *sim, const char *name);

/* Returns the sum of the sizes of all files. */
uint64_t sim_bytes(const struct sim_disk *sim);

/* Create a stable file with these bytes. */
void sim_plant(struct sim_disk *sim, const char *name, const void *bytes, size_t count);

#endif
