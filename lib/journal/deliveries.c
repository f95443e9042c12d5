/* SPDX-License-Identifier: MIT */
/* See deliveries.h: an array with a free list. Tested through take, done, retry and release. */
#include "journal/deliveries.h"

#include <errno.h>
#include <stdlib.h>

#define CAPACITY_MIN 16u

int hands_reserve(struct hands *hands)
{
	uint32_t capacity = hands->capacity > 0 ? hands->capacity * 2 : CAPACITY_MIN;
	struct hand *places;

	if (hands->free > 0)
		return 0;
	if (hands->capacity > UINT32_MAX / 4)
		return -ENOMEM;
	places = realloc(hands->places, capacity * sizeof(*places));
	if (!places)
		return -ENOMEM;
	for (uint32_t i = hands->capacity; i < capacity; i++)
		places[i] = (struct hand){ .next = i + 1 < capacity ? i + 2 : 0 };
	hands->free = hands->capacity + 1;
	hands->places = places;
	hands->capacity = capacity;
	return 0;
}

uint64_t hands_insert(struct hands *hands, struct task *task, uint64_t periods)
{
	uint32_t number = hands->free;
	struct hand *hand = &hands->places[number - 1];

	hands->free = hand->next;
	hands->count++;
	hands->round++;
	*hand = (struct hand){ .task = task, .periods = periods, .round = hands->round };
	task->hand = number;
	task->holders++;
	return (uint64_t)hands->round << 32 | number;
}

struct hand *hands_find(const struct hands *hands, uint64_t delivery)
{
	uint32_t number = (uint32_t)delivery;
	struct hand *hand;

	if (number == 0 || number > hands->capacity)
		return NULL;
	hand = &hands->places[number - 1];
	return hand->task && hand->round == delivery >> 32 ? hand : NULL;
}

bool hands_is_latest(const struct hands *hands, const struct hand *hand)
{
	return hand->task->hand == (uint32_t)(hand - hands->places) + 1;
}

void hands_remove(struct hands *hands, struct tasks *tasks, struct hand *hand)
{
	struct task *task = hand->task;

	if (hands_is_latest(hands, hand))
		task->hand = 0;
	task->holders--;
	if (task->holders == 0 && task->state == TASK_ENDED)
		tasks_free(tasks, task);
	hand->task = NULL;
	hand->next = hands->free;
	hands->free = (uint32_t)(hand - hands->places) + 1;
	hands->count--;
}

void hands_fini(struct hands *hands, struct tasks *tasks)
{
	for (uint32_t i = 0; i < hands->capacity; i++)
		if (hands->places[i].task)
			hands_remove(hands, tasks, &hands->places[i]);
	free(hands->places);
	*hands = (struct hands){ .places = NULL };
}
