/* SPDX-License-Identifier: MIT */
/*
 * Races in mode c11: two accesses without a happens-before order. The simulation's own plain data
 * is checked at each of its reads and writes.
 */
#ifndef SIMULATION_RACES_H
#define SIMULATION_RACES_H

#include "memory_models.h"
#include "source_line.h"

/* The last access by each thread. If the epoch is 0, the thread has made no access. */
struct accesses {
	int32_t epochs[MEMORY_THREADS];
	struct source_line places[MEMORY_THREADS];
};

/*
 * If one of the accesses does not happen before the current actor's access, fail and name both
 * places.
 */
void accesses_check(const struct accesses *accesses, const char *what, struct source_line place);
void accesses_note(struct accesses *accesses, struct source_line place);

/* Returns whether the atomic stores in this place may come in either order. */
bool races_allowed(struct source_line place);

/* A piece of plain data. */
struct plain {
	struct accesses reads, writes;
};

/* Record a read or a write. Fails if it races with an earlier access. */
void plain_read_at(struct plain *plain, struct source_line place);
void plain_write_at(struct plain *plain, struct source_line place);
#define plain_read(plain) plain_read_at(plain, (struct source_line){ __FILE__, __LINE__ })
#define plain_write(plain) plain_write_at(plain, (struct source_line){ __FILE__, __LINE__ })

#endif
