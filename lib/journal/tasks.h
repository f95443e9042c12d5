/* SPDX-License-Identifier: MIT */
/*
 * Finds a journal's tasks by id and by key, in two hash tables, and adds up the sizes of the tasks.
 * The caller of each function holds the journal's lock.
 *
 * If the put of a task is in flight, the task is already in the tables. Therefore a second put of
 * its key finds the task.
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
	/* Bytes of data and keys in memory, including ended tasks that have deliveries. */
	uint64_t data_bytes;
	/* Bytes of the records of all tasks, including the record that will end each task. */
	uint64_t live_bytes;
};

/*
 * Make a task from the fields of a record. The new task is in no table. Returns NULL if there is no
 * memory.
 */
struct task *task_new(const struct record *record);

/* Free a task that is in no table and has no delivery. */
void tasks_free(struct tasks *tasks, struct task *task);

/* Free all tasks in the tables, and the tables. */
void tasks_fini(struct tasks *tasks);

/* Grow the tables so that `count` tasks have short chains. Returns 0 or -ENOMEM. */
int tasks_reserve(struct tasks *tasks, uint32_t count);

/* Make the table of keys, before the first task with a key is inserted. Returns 0 or -ENOMEM. */
int tasks_reserve_keys(struct tasks *tasks);

/* Insert a task, which then belongs to the tables. No other task may have the task's id. */
void tasks_insert(struct tasks *tasks, struct task *task);

/* Returns the task with the id or the key, or NULL if there is no such task. */
struct task *tasks_find(const struct tasks *tasks, uint64_t id);
struct task *tasks_find_key(const struct tasks *tasks, const void *key, size_t key_len);

/*
 * Remove a task, which must be in no agenda, from the tables. If the task has no delivery in
 * progress, free the task. Otherwise tasks_free() frees the task when its last delivery ends.
 */
void tasks_remove(struct tasks *tasks, struct task *task);

/* Returns the size of the task's record on disk, in bytes. */
size_t tasks_record_bytes(const struct task *task);

/* Call `visit` for every task. The callback may remove the task with which it is called. */
void tasks_each(const struct tasks *tasks, void (*visit)(void *context, struct task *task),
                void *context);

#endif
