/* SPDX-License-Identifier: MIT */
/*
 * Detects races in mode c11. A race is two accesses, at least one of them a write, without a
 * happens-before order. A test that has plain data of its own calls plain_read() or plain_write()
 * at each access of the data.
 */
#ifndef SIMULATION_RACES_H
#define SIMULATION_RACES_H

#include "memory_models.h"
#include "source_location.h"

/*
 * The last access by each thread to one object. If a thread's epoch is 0, the thread has not
 * accessed the object.
 */
struct accesses {
	int32_t epochs[MEMORY_THREADS];
	struct source_location places[MEMORY_THREADS];
};

/*
 * Fail if one of the recorded accesses does not happen before the current actor's access. The
 * message names the places of both accesses.
 */
void accesses_check(const struct accesses *accesses, const char *what,
                    struct source_location place);
void accesses_note(struct accesses *accesses, struct source_location place);

/* Returns whether the atomic stores at this line of the source may come in either order. */
bool races_allowed(struct source_location place);

/* Stands for one piece of plain data, and records the accesses to it. */
struct plain {
	struct accesses reads, writes;
};

/*
 * Record a read or a write of plain data. Fails if the read or write races with an earlier access.
 */
void plain_read_at(struct plain *plain, struct source_location place);
void plain_write_at(struct plain *plain, struct source_location place);
#define plain_read(plain) plain_read_at(plain, (struct source_location){ __FILE__, __LINE__ })
#define plain_write(plain) plain_write_at(plain, (struct source_location){ __FILE__, __LINE__ })

#endif
