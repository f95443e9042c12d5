/* SPDX-License-Identifier: MIT */
/*
 * A priority queue of tasks by time, then by id: one for tasks to deliver, on the wall clock, one
 * for leases, on the monotonic clock. A 4-ary heap of 16-byte cells with time and pointer, so a
 * comparison does not read the task. It reads no clock.
 */
#ifndef JOURNAL_AGENDA_H
#define JOURNAL_AGENDA_H

#include <stdbool.h>
#include <stddef.h>

#include "journal/task.h"

struct agenda_cell {
	uint64_t time_ns;
	struct task *task;
};

struct agenda {
	struct agenda_cell *cells;
	uint32_t count;
	uint32_t capacity;
};

/* Room for `count` tasks, so that agenda_insert() cannot fail. 0 or -ENOMEM. */
int agenda_reserve(struct agenda *agenda, uint32_t count);

void agenda_fini(struct agenda *agenda);

/* A task of no agenda; there must be room. */
void agenda_insert(struct agenda *agenda, struct task *task, uint64_t time_ns);

/* Returns the time under which it was there. */
uint64_t agenda_remove(struct agenda *agenda, struct task *task);

/* Returns the earliest task of the agenda, or NULL if the agenda is empty. */
struct task *agenda_first(const struct agenda *agenda);

/* UINT64_MAX if it is empty. */
uint64_t agenda_first_ns(const struct agenda *agenda);

#endif
