/* SPDX-License-Identifier: MIT */
/*
 * Races, in mode c11: two accesses of which neither happens before the other. Data that is not
 * atomic is watched where the simulation says so: at each read and write that it makes itself.
 */
#ifndef SIMULATION_RACES_H
#define SIMULATION_RACES_H

#include "memory.h"
#include "place.h"

/* The last access by each thread. Epoch 0: none. */
struct accesses {
	int32_t epochs[MEMORY_THREADS];
	struct place places[MEMORY_THREADS];
};

/* Fail, naming both, if one of them does not happen before what the current actor does here. */
void accesses_check(const struct accesses *accesses, const char *what, struct place place);
void accesses_note(struct accesses *accesses, struct place place);

/* May atomic stores in this place come in either order? */
bool races_allowed(struct place place);

/* A datum that is not atomic. */
struct plain {
	struct accesses reads, writes;
};

/* Read it, or write it; fails if that races with an access before. */
void plain_read_at(struct plain *plain, struct place place);
void plain_write_at(struct plain *plain, struct place place);
#define plain_read(plain) plain_read_at(plain, (struct place){ __FILE__, __LINE__ })
#define plain_write(plain) plain_write_at(plain, (struct place){ __FILE__, __LINE__ })

#endif
