/* SPDX-License-Identifier: MIT */
/* All tasks of a journal, by id, and what they amount to. Under the journal's lock. */
#ifndef JOURNAL_TASKS_H
#define JOURNAL_TASKS_H

#include <stdbool.h>
#include <stddef.h>

#include "task.h"

struct tasks {
	struct task **buckets;
	uint32_t buckets_count; /* a power of two, or 0 */
	uint32_t count;
	uint64_t data_bytes; /* of all */
	uint64_t live_bytes; /* of all, as records */
};

/* A task with a copy of the data, in no table; free() it. NULL: no memory. */
struct task *task_new(uint64_t due_ns, const void *data, uint32_t data_len);

void tasks_fini(struct tasks *tasks); /* frees the tasks too */

/* 0 or -ENOMEM: room for `count` tasks without long chains. */
int tasks_reserve(struct tasks *tasks, uint32_t count);

/* The table owns the task from now on. No task may have its id. */
void tasks_insert(struct tasks *tasks, struct task *task);

/* NULL: none. */
struct task *tasks_find(const struct tasks *tasks, uint64_t id);

/* Out of the table and freed; it must be in no agenda. */
void tasks_remove(struct tasks *tasks, struct task *task);

/* Call `visit` for every task. */
void tasks_each(const struct tasks *tasks, void (*visit)(void *context, struct task *task),
                void *context);

#endif
