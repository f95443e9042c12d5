/* SPDX-License-Identifier: MIT */
/*
 * A task in memory: one allocation, its data behind it. 48 bytes, 16 in an agenda, 8 of the table:
 * 72 and what the allocator adds, where 128 are allowed (a timer of the hub would take 81 more;
 * README.md). Everything is written under the journal's lock, but data, id and data_len, which
 * never change.
 */
#ifndef JOURNAL_TASK_H
#define JOURNAL_TASK_H

#include <stdint.h>

enum task_state {
	TASK_PENDING, /* in the agenda of what is to come, by due_ns */
	TASK_TAKEN,   /* in somebody's hands; in the agenda of leases if leases end */
};

#define TASK_NOWHERE UINT32_MAX /* agenda_index of a task in no agenda */

struct task {
	uint64_t id;
	uint64_t due_ns;   /* CLOCK_REALTIME; UINT64_MAX: never */
	struct task *next; /* in its bucket of the table */
	uint32_t segment;  /* where its data is on disk: the segment's number, cut to 32 bits */
	uint32_t offset8;  /* and there the record's offset, by 8 bytes */
	uint32_t attempts; /* deliveries so far; saturates */
	uint32_t data_len;
	uint32_t agenda_index; /* where the agenda that it is in has it, or TASK_NOWHERE */
	uint16_t state;        /* enum task_state */
	uint16_t changing; /* 1: a change of it is on its way to the disk; in no agenda meanwhile */
	unsigned char data[];
};

#endif
