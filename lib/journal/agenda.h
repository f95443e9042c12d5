/* SPDX-License-Identifier: MIT */
/*
 * A priority queue of tasks by time. Of two tasks with equal times, the task with the lower id is
 * first. A journal has two agendas: tasks to deliver, on the wall clock, and leases, on the
 * monotonic clock. The agenda is a 4-ary heap of 16-byte cells. A cell of the heap holds the time
 * and the pointer to the task, so a comparison does not read the task. The module reads no clock:
 * time is an argument.
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

/*
 * Reserve room for `count` tasks. An insert needs reserved room, so it cannot fail. Returns 0 or
 * -ENOMEM.
 */
int agenda_reserve(struct agenda *agenda, uint32_t count);

void agenda_fini(struct agenda *agenda);

/* Insert a task that is in no agenda. The agenda must have room for the task. */
void agenda_insert(struct agenda *agenda, struct task *task, uint64_t time_ns);

/* Returns the time for which the task was in the agenda. */
uint64_t agenda_remove(struct agenda *agenda, struct task *task);

/* Returns NULL if the agenda is empty. */
struct task *agenda_first(const struct agenda *agenda);

/* Returns UINT64_MAX if the agenda is empty. */
uint64_t agenda_first_ns(const struct agenda *agenda);

#endif
