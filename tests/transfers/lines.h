/* SPDX-License-Identifier: MIT */
/*
 * Which processor has a copy of which cache line: a directory as of the MESI protocol, for caches
 * without bounds. A line is read from another processor if the reader has no copy and another has;
 * it is invalidated if the writer is not the only one that has it.
 */
#ifndef TRANSFERS_LINES_H
#define TRANSFERS_LINES_H

#include <stdbool.h>
#include <stdint.h>

#define LINE_BYTES 64
#define PROCESSORS_MAX 272 /* callers, and an owner for each hub */

/* What an access does to its line. */
struct line_move {
	bool fetched;     /* read from another processor's cache */
	bool remote;      /* which was on another node */
	bool invalidated; /* taken away from others */
};

/* Processors 0 to n - 1 are spread over the nodes by this table. Forgets all lines. */
void lines_begin(const uint8_t *node_of);

/* `processor` reads or writes the line that has this address. */
struct line_move lines_access(uintptr_t address, unsigned processor, bool write);

#endif
