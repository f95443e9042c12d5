/* SPDX-License-Identifier: MIT */
/* An array with a free list, tested with take, done, retry and release. */
#include "journal/delivery_table.h"

#include <errno.h>
#include <stdlib.h>

#define CAPACITY_MIN 16u

int delivery_table_reserve(struct delivery_table *deliveries)
{
	uint32_t capacity = deliveries->capacity > 0 ? deliveries->capacity * 2 : CAPACITY_MIN;
	struct delivery *places;

	if (deliveries->free > 0)
		return 0;
	if (deliveries->capacity > UINT32_MAX / 4)
		return -ENOMEM;
	places = realloc(deliveries->places, capacity * sizeof(*places));
	if (!places)
		return -ENOMEM;
	for (uint32_t i = deliveries->capacity; i < capacity; i++)
		places[i] = (struct delivery){ .next = i + 1 < capacity ? i + 2 : 0 };
	deliveries->free = deliveries->capacity + 1;
	deliveries->places = places;
	deliveries->capacity = capacity;
	return 0;
}

uint64_t delivery_table_insert(struct delivery_table *deliveries, struct task *task,
                               uint64_t periods)
{
	uint32_t number = deliveries->free;
	struct delivery *held = &deliveries->places[number - 1];

	deliveries->free = held->next;
	deliveries->count++;
	deliveries->round++;
	*held = (struct delivery){
		.task = task,
		.periods = periods,
		.due_ns = task->due_ns,
		.round = deliveries->round,
	};
	task->latest = number;
	task->holders++;
	return (uint64_t)deliveries->round << 32 | number;
}

struct delivery *delivery_table_find(const struct delivery_table *deliveries, uint64_t delivery)
{
	uint32_t number = (uint32_t)delivery;
	struct delivery *held;

	if (number == 0 || number > deliveries->capacity)
		return NULL;
	held = &deliveries->places[number - 1];
	return held->task && held->round == delivery >> 32 ? held : NULL;
}

bool deliveries_is_latest(const struct delivery_table *deliveries, const struct delivery *held)
{
	return held->task->latest == (uint32_t)(held - deliveries->places) + 1;
}

void delivery_table_remove(struct delivery_table *deliveries, struct tasks *tasks,
                           struct delivery *held)
{
	struct task *task = held->task;

	if (deliveries_is_latest(deliveries, held))
		task->latest = 0;
	task->holders--;
	if (task->holders == 0 && task->state == TASK_ENDED)
		tasks_free(tasks, task);
	held->task = NULL;
	held->next = deliveries->free;
	deliveries->free = (uint32_t)(held - deliveries->places) + 1;
	deliveries->count--;
}

void delivery_table_fini(struct delivery_table *deliveries, struct tasks *tasks)
{
	for (uint32_t i = 0; i < deliveries->capacity; i++)
		if (deliveries->places[i].task)
			delivery_table_remove(deliveries, tasks, &deliveries->places[i]);
	free(deliveries->places);
	*deliveries = (struct delivery_table){ .places = NULL };
}
