/* SPDX-License-Identifier: MIT */
/* See lines.h. A hash table by address, with linear probing; it is never emptied. */
#include "lines.h"

#include <stdio.h>
#include <stdlib.h>

#define TABLE_BITS 21
#define HOLDER_WORDS ((PROCESSORS_MAX + 63) / 64)

struct line {
	uintptr_t base; /* 0: no line yet */
	uint64_t holders[HOLDER_WORDS];
};

static struct line *table;
static const uint8_t *nodes;
static uint32_t lines_count;

void lines_begin(const uint8_t *node_of)
{
	free(table);
	table = calloc((size_t)1 << TABLE_BITS, sizeof(*table));
	if (!table) {
		perror("transfers");
		exit(2);
	}
	nodes = node_of;
	lines_count = 0;
}

static struct line *line_of(uintptr_t base)
{
	uint64_t at = base / LINE_BYTES * UINT64_C(0x9e3779b97f4a7c15) >> (64 - TABLE_BITS);

	for (; table[at].base != 0; at = (at + 1) & (((uint64_t)1 << TABLE_BITS) - 1))
		if (table[at].base == base)
			return &table[at];
	if (++lines_count > 1u << (TABLE_BITS - 1)) {
		(void)fprintf(stderr, "transfers: too many lines\n");
		exit(2);
	}
	table[at].base = base;
	return &table[at];
}

static bool line_held_at(const struct line *line, unsigned node)
{
	for (unsigned i = 0; i < PROCESSORS_MAX; i++)
		if ((line->holders[i / 64] >> i % 64 & 1) != 0 && nodes[i] == node)
			return true;
	return false;
}

struct line_move lines_access(uintptr_t address, unsigned processor, bool write)
{
	struct line *line = line_of(address & ~(uintptr_t)(LINE_BYTES - 1));
	uint64_t mine = (uint64_t)1 << processor % 64, others = 0;
	struct line_move move = { .fetched = false };
	bool held = (line->holders[processor / 64] & mine) != 0;

	for (unsigned i = 0; i < HOLDER_WORDS; i++)
		others |= line->holders[i] & ~(i == processor / 64 ? mine : 0);
	if (!held && others != 0) {
		move.fetched = true;
		move.remote = !line_held_at(line, nodes[processor]);
	}
	if (write && others != 0) {
		move.invalidated = true;
		for (unsigned i = 0; i < HOLDER_WORDS; i++)
			line->holders[i] = 0;
	}
	line->holders[processor / 64] |= mine;
	return move;
}
