/* SPDX-License-Identifier: MIT */
/* Hash tables with chains; consecutive ids with a multiplicative hash give chains of one or two. */
#include "journal/tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "journal/siphash.h"

#define BUCKETS_MIN 64u
/* 2^64 divided by the golden ratio: Knuth, volume 3, section 6.4 */
#define SPREAD UINT64_C(0x9e3779b97f4a7c15)

struct task *task_new(const struct record *record)
{
	struct task *task = malloc(sizeof(*task) + record->data_len + record->key_len);

	if (!task)
		return NULL;
	*task = (struct task){
		.id = record->id,
		.due_ns = record->due_ns,
		.interval_ns = record->interval_ns,
		.attempts = record->attempts,
		.reason = record->reason,
		.data_len = record->data_len,
		.key_len = (uint8_t)record->key_len,
		.agenda_index = TASK_NOWHERE,
	};
	if (record->data_len > 0)
		memcpy(task->bytes, record->data, record->data_len);
	if (record->key_len > 0)
		memcpy(task->bytes + record->data_len, record->key, record->key_len);
	return task;
}

size_t tasks_record_bytes(const struct task *task)
{
	return record_bytes(task->interval_ns, task->key_len, task->data_len);
}

/* Returns the bytes of the task's record and of the record that will end it. */
static uint64_t tasks_live_bytes(const struct task *task)
{
	return tasks_record_bytes(task) + RECORD_HEADER_BYTES;
}

void tasks_free(struct tasks *tasks, struct task *task)
{
	tasks->data_bytes -= (uint64_t)task->data_len + task->key_len;
	free(task);
}

static void tasks_free_one(void *context, struct task *task)
{
	(void)context;
	free(task);
}

void tasks_fini(struct tasks *tasks)
{
	tasks_each(tasks, tasks_free_one, NULL);
	free(tasks->buckets);
	free(tasks->keys);
	*tasks = (struct tasks){ .buckets = NULL };
}

/* ---- the tables ---- */

static struct task **tasks_bucket(const struct tasks *tasks, uint64_t id)
{
	return &tasks->buckets[(id * SPREAD >> 32) & (tasks->buckets_count - 1)];
}

static struct task **tasks_key_bucket(const struct tasks *tasks, const void *key, size_t key_len)
{
	return &tasks->keys[siphash_bytes(tasks->seed, key, key_len) & (tasks->buckets_count - 1)];
}

static void tasks_chain_key(struct tasks *tasks, struct task *task)
{
	struct task **head = tasks_key_bucket(tasks, task_key(task), task->key_len);

	task->next_by_key = *head;
	*head = task;
}

static void tasks_chain(void *context, struct task *task)
{
	struct tasks *tasks = context;
	struct task **head = tasks_bucket(tasks, task->id);

	task->next = *head;
	*head = task;
	if (task->key_len > 0)
		tasks_chain_key(tasks, task);
}

int tasks_reserve(struct tasks *tasks, uint32_t count)
{
	struct tasks larger = *tasks;

	if (count <= tasks->buckets_count)
		return 0;
	if (larger.buckets_count == 0)
		larger.buckets_count = BUCKETS_MIN;
	while (larger.buckets_count < count && larger.buckets_count <= UINT32_MAX / 2)
		larger.buckets_count *= 2;
	larger.buckets = calloc(larger.buckets_count, sizeof(struct task *));
	larger.keys = tasks->keys ? calloc(larger.buckets_count, sizeof(struct task *)) : NULL;
	if (!larger.buckets || (tasks->keys && !larger.keys)) {
		free(larger.buckets);
		free(larger.keys);
		return -ENOMEM;
	}
	tasks_each(tasks, tasks_chain, &larger);
	free(tasks->buckets);
	free(tasks->keys);
	*tasks = larger;
	return 0;
}

int tasks_reserve_keys(struct tasks *tasks)
{
	if (!tasks->keys)
		tasks->keys = calloc(tasks->buckets_count, sizeof(struct task *));
	return tasks->keys ? 0 : -ENOMEM;
}

void tasks_insert(struct tasks *tasks, struct task *task)
{
	tasks_chain(tasks, task);
	tasks->count++;
	tasks->data_bytes += (uint64_t)task->data_len + task->key_len;
	tasks->live_bytes += tasks_live_bytes(task);
}

struct task *tasks_find(const struct tasks *tasks, uint64_t id)
{
	struct task *task = tasks->buckets_count > 0 ? *tasks_bucket(tasks, id) : NULL;

	while (task && task->id != id)
		task = task->next;
	return task;
}

static struct task *tasks_with_key(struct task *task, const void *key, size_t key_len)
{
	while (task && (task->key_len != key_len || memcmp(task_key(task), key, key_len) != 0))
		task = task->next_by_key;
	return task;
}

struct task *tasks_find_key(const struct tasks *tasks, const void *key, size_t key_len)
{
	struct task *first = tasks->keys ? *tasks_key_bucket(tasks, key, key_len) : NULL;

	return tasks_with_key(first, key, key_len);
}

struct task *tasks_find_key_after(const struct task *task)
{
	return tasks_with_key(task->next_by_key, task_key(task), task->key_len);
}

void tasks_remove(struct tasks *tasks, struct task *task)
{
	struct task **link = tasks_bucket(tasks, task->id);

	while (*link != task)
		link = &(*link)->next;
	*link = task->next;
	if (task->key_len > 0) {
		link = tasks_key_bucket(tasks, task_key(task), task->key_len);
		while (*link != task)
			link = &(*link)->next_by_key;
		*link = task->next_by_key;
	}
	tasks->count--;
	tasks->live_bytes -= tasks_live_bytes(task);
	task->state = TASK_ENDED;
	if (task->holders == 0)
		tasks_free(tasks, task);
}

void tasks_each(const struct tasks *tasks, void (*visit)(void *context, struct task *task),
                void *context)
{
	for (uint32_t i = 0; i < tasks->buckets_count; i++)
		for (struct task *task = tasks->buckets[i], *next; task; task = next) {
			next = task->next;
			visit(context, task);
		}
}
