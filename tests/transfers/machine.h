/* SPDX-License-Identifier: MIT */
/*
 * A machine of many processors on one thread: each is a coroutine with a clock, and they take turns
 * by the clock, so that what they do overlaps as on a real machine. The library is compiled with
 * -fsanitize=thread and linked without its runtime: each access to memory calls the machine, which
 * counts what the access does to its cache line.
 */
#ifndef TRANSFERS_MACHINE_H
#define TRANSFERS_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "lines.h"

/* What memory a line belongs to. */
enum place {
	PLACE_WORDS,
	PLACE_RECORDS,
	PLACE_FILINGS,
	PLACE_FREE_STACKS,
	PLACE_LANES,
	PLACE_CELLS,
	PLACE_PROMISE,
	PLACE_QUEUES,
	PLACE_OTHER,
	PLACES
};

/* What some processors did while they were busy with one kind of operation. */
struct tally {
	uint64_t operations;
	uint64_t accesses;
	uint64_t fetched, remote, invalidated, locked;
	uint64_t ticks;
	uint64_t moves[PLACES]; /* fetched, or invalidated without being fetched */
};

struct machine_setup {
	unsigned processors;
	const uint8_t *node_of;               /* of each processor */
	enum place (*place_of)(uintptr_t at); /* NULL: all is PLACE_OTHER */
	bool (*ignored)(uintptr_t at);        /* accesses that are not to count; NULL: none */
	void (*body)(unsigned processor);     /* never returns */
};

void machine_begin(const struct machine_setup *setup);

/* Does one of the processors run, and not the program that began them? */
bool machine_running(void);

/* The time that all of them have reached. */
uint64_t machine_time(void);

/* Let the processors go on until the body of each has called machine_step() so often. */
void machine_run(uint64_t steps, unsigned steppers);

/* ---- for the bodies ---- */

/* Charge what this processor does from here on; returns what it was charged to before. */
struct tally *machine_charge(struct tally *tally);

/* This processor asks for lines long before it needs them, and seldom waits for one. */
void machine_fetches_ahead(void);

/* This processor has done one step of its own. */
void machine_step(void);

/* Do nothing until the next turn. */
void machine_idle(void);

/* The processor that runs, and its clock: about nanoseconds. */
unsigned machine_self(void);
uint64_t machine_now(void);

#endif
