/* SPDX-License-Identifier: MIT */
/*
 * See tasks.h: a table of chains. Ids are given out one after the other, so the multiplier that
 * spreads them leaves chains of one or two. Tested through recovery and every call.
 */
#include "tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"

#define BUCKETS_MIN 64u
#define SPREAD UINT64_C(0x9e3779b97f4a7c15) /* 2^64 by the golden ratio: Knuth, volume 3, 6.4 */

struct task *task_new(uint64_t due_ns, const void *data, uint32_t data_len)
{
	struct task *task = malloc(sizeof(*task) + data_len);

	if (!task)
		return NULL;
	*task = (struct task){
		.due_ns = due_ns,
		.data_len = data_len,
		.agenda_index = TASK_NOWHERE,
	};
	if (data_len > 0)
		memcpy(task->data, data, data_len);
	return task;
}

static void free_task(void *context, struct task *task)
{
	(void)context;
	free(task);
}

void tasks_fini(struct tasks *tasks)
{
	tasks_each(tasks, free_task, NULL);
	free(tasks->buckets);
	*tasks = (struct tasks){ .buckets = NULL };
}

static struct task **bucket(const struct tasks *tasks, uint64_t id)
{
	return &tasks->buckets[(id * SPREAD >> 32) & (tasks->buckets_count - 1)];
}

static void chain(struct tasks *tasks, struct task *task)
{
	struct task **head = bucket(tasks, task->id);

	task->next = *head;
	*head = task;
}

static void rechain(void *context, struct task *task)
{
	chain(context, task);
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
	if (!larger.buckets)
		return -ENOMEM;
	tasks_each(tasks, rechain, &larger);
	free(tasks->buckets);
	*tasks = larger;
	return 0;
}

void tasks_insert(struct tasks *tasks, struct task *task)
{
	chain(tasks, task);
	tasks->count++;
	tasks->data_bytes += task->data_len;
	tasks->live_bytes += record_bytes(task->data_len);
}

struct task *tasks_find(const struct tasks *tasks, uint64_t id)
{
	struct task *task = tasks->buckets_count > 0 ? *bucket(tasks, id) : NULL;

	while (task && task->id != id)
		task = task->next;
	return task;
}

void tasks_remove(struct tasks *tasks, struct task *task)
{
	struct task **link = bucket(tasks, task->id);

	while (*link != task)
		link = &(*link)->next;
	*link = task->next;
	tasks->count--;
	tasks->data_bytes -= task->data_len;
	tasks->live_bytes -= record_bytes(task->data_len);
	free(task);
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
