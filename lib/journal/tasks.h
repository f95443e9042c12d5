/* SPDX-License-Identifier: MIT */
/*
 * Tasks by id and by key, and the sum of their sizes; under the journal's lock. A put in flight is
 * in the tables already, so that a second put of its key finds it.
 */
#ifndef JOURNAL_TASKS_H
#define JOURNAL_TASKS_H

#include <stdbool.h>
#include <stddef.h>

#include "journal/record.h"
#include "journal/task.h"

struct tasks {
	struct task **buckets;  /* table of ids */
	struct task **keys;     /* table of keys, or NULL before the first task with a key */
	uint32_t buckets_count; /* number of buckets of each table: a power of two, or 0 */
	uint32_t count;
	uint64_t seed[2]; /* seed of the hash of keys */
	/* of data and keys in memory, also of ended tasks with deliveries */
	uint64_t data_bytes;
	/* of the records of all tasks, and of those that will end them */
	uint64_t live_bytes;
};

/* From a record, in no table; NULL: no memory. */
struct task *task_new(const struct record *record);

/* Free a task that is in no table and has no delivery. */
void tasks_free(struct tasks *tasks, struct task *task);

/* With all tasks in the tables. */
void tasks_fini(struct tasks *tasks);

/*
 * At open only: the compactor's scan relies on fixed buckets, and of two tasks with a key (a cancel
 * and a put in one transaction) the newer must be first. 0 or -ENOMEM.
 */
int tasks_reserve(struct tasks *tasks, uint32_t count);

/* Before the first task with a key. 0 or -ENOMEM. */
int tasks_reserve_keys(struct tasks *tasks);

/* It is the tables' then; no other has its id. */
void tasks_insert(struct tasks *tasks, struct task *task);

/* Or NULL. */
struct task *tasks_find(const struct tasks *tasks, uint64_t id);
struct task *tasks_find_key(const struct tasks *tasks, const void *key, size_t key_len);

/* With the same key, which a transaction in flight ends; or NULL. */
struct task *tasks_find_key_after(const struct task *task);

/* In no agenda. Freed at once, or by tasks_free() when its last delivery ends. */
void tasks_remove(struct tasks *tasks, struct task *task);

/* On disk. */
size_t tasks_record_bytes(const struct task *task);

/* The callback may remove its task. */
void tasks_each(const struct tasks *tasks, void (*visit)(void *context, struct task *task),
                void *context);

#endif
