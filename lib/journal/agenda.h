/* SPDX-License-Identifier: MIT */
/*
 * Declares the agenda, a priority queue of tasks by time. Of two tasks with equal times, the task
 * with the lower id is first. A journal has two agendas: tasks to deliver, on the wall clock, and
 * leases, on the monotonic clock. The agenda is a 4-ary heap of 16-byte cells. A cell holds the
 * time and the pointer to the task, so a comparison does not read the task. The agenda reads no
 * clock.
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
 * Reserve room for `count` tasks in the agenda. Because agenda_insert() only uses reserved room,
 * agenda_insert() cannot fail. Returns 0 or -ENOMEM.
 */
int agenda_reserve(struct agenda *agenda, uint32_t count);

void agenda_fini(struct agenda *agenda);

/* Insert a task that is in no agenda. The agenda must have room for the task. */
void agenda_insert(struct agenda *agenda, struct task *task, uint64_t time_ns);

/* Remove a task from the agenda. Returns the time under which the task was in the agenda. */
uint64_t agenda_remove(struct agenda *agenda, struct task *task);

/* Returns the earliest task of the agenda, or NULL if the agenda is empty. */
struct task *agenda_first(const struct agenda *agenda);

/* Returns the time of the earliest task of the agenda, or UINT64_MAX if the agenda is empty. */
uint64_t agenda_first_ns(const struct agenda *agenda);

#endif
