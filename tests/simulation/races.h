/* SPDX-License-Identifier: MIT */
/*
 * Finds data races in mode `c11`: two accesses of the same data, one of them a write, of which
 * neither happens before the other. A test that has plain data of its own calls plain_read() and
 * plain_write() for it.
 */
#ifndef SIMULATION_RACES_H
#define SIMULATION_RACES_H

#include "memory_models.h"
#include "source_location.h"

/* Epoch 0: no access. */
struct accesses {
	int32_t epochs[MEMORY_THREADS];
	struct source_location places[MEMORY_THREADS];
};

/* Fails, naming both places, if a recorded access does not happen before the present access. */
void accesses_check(const struct accesses *accesses, const char *what,
                    struct source_location place);
void accesses_note(struct accesses *accesses, struct source_location place);

/* Returns whether two atomic stores of this line may come in either order, although one is lost. */
bool races_allowed(struct source_location place);

/* One piece of plain data. */
struct plain {
	struct accesses reads, writes;
};

/* Fails at a race. */
void plain_read_at(struct plain *plain, struct source_location place);
void plain_write_at(struct plain *plain, struct source_location place);
#define plain_read(plain) plain_read_at(plain, (struct source_location){ __FILE__, __LINE__ })
#define plain_write(plain) plain_write_at(plain, (struct source_location){ __FILE__, __LINE__ })

#endif
