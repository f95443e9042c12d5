/* SPDX-License-Identifier: MIT */
/*
 * Tasks by time, the earliest first; of equal times the lowest id. A journal has two agendas: tasks
 * to deliver, on the wall clock, and leases, on the monotonic clock. A 4-ary heap of 16-byte cells,
 * the time beside the pointer so that comparing stays in the cells. No clock: time is an argument.
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

/* See to it that `count` tasks have room: insert never fails below that. 0 or -ENOMEM. */
int agenda_reserve(struct agenda *agenda, uint32_t count);

void agenda_fini(struct agenda *agenda);

/* The task must be in no agenda, and there must be room. */
void agenda_insert(struct agenda *agenda, struct task *task, uint64_t time_ns);

/* Returns the time it was there for. */
uint64_t agenda_remove(struct agenda *agenda, struct task *task);

/* NULL if empty. */
struct task *agenda_first(const struct agenda *agenda);

/* UINT64_MAX if empty. */
uint64_t agenda_first_ns(const struct agenda *agenda);

#endif
