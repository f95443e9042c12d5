/* SPDX-License-Identifier: MIT */
/*
 * Deliveries in the hands of workers. A hand keeps its task in memory, though that is done or
 * cancelled meanwhile, until the worker has answered for the delivery. Of the hands that hold one
 * task the latest delivery's is the only one that may end it. Under the journal's lock.
 */
#ifndef JOURNAL_HANDS_H
#define JOURNAL_HANDS_H

#include "journal/tasks.h"

struct hand {
	struct task *task; /* NULL: the place is free */
	uint64_t periods;  /* how many this delivery stands for */
	uint32_t round;    /* which delivery at this place: not that of an earlier one */
	uint32_t next;     /* the next free place, plus 1 */
};

struct hands {
	struct hand *places;
	uint32_t capacity;
	uint32_t count; /* of places in use */
	uint32_t free;  /* the first free place, plus 1; 0: none */
	uint32_t round;
};

/* 0 or -ENOMEM: room for one more. */
int hands_reserve(struct hands *hands);

/* Returns the number of the delivery, never 0, which is now the task's latest. There is room. */
uint64_t hands_insert(struct hands *hands, struct task *task, uint64_t periods);

/* Returns NULL if the delivery is over. Valid until the next hands_reserve(). */
struct hand *hands_find(const struct hands *hands, uint64_t delivery);

/* Is the hand's delivery the latest of its task? */
bool hands_is_latest(const struct hands *hands, const struct hand *hand);

/* The delivery is over; a task that has ended goes with the last hand that holds it. */
void hands_remove(struct hands *hands, struct tasks *tasks, struct hand *hand);

/* Let go of all. */
void hands_fini(struct hands *hands, struct tasks *tasks);

#endif
