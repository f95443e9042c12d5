/* SPDX-License-Identifier: MIT */
/*
 * Deliveries without an answer yet. Each keeps its task in memory, even an ended one, until it is
 * acknowledged, returned, parked or released. Only a task's latest may change it. Under the
 * journal's lock.
 */
#ifndef JOURNAL_DELIVERY_TABLE_H
#define JOURNAL_DELIVERY_TABLE_H

#include "journal/tasks.h"

struct delivery {
	struct task *task; /* the delivered task, or NULL if the element is free */
	/* Number of periods that the delivery covers, or 1 if the task is not periodic. */
	uint64_t periods;
	uint64_t due_ns; /* the task's at the delivery: a move may follow the lease's end */
	/* upper half of its number, from a counter: two at one index differ until that wraps */
	uint32_t round;
	uint32_t next; /* in a free element: index of the next free element plus 1, or 0 */
};

struct delivery_table {
	struct delivery *places;
	uint32_t capacity;
	uint32_t count; /* number of elements in use */
	uint32_t free;  /* index of the first free element plus 1, or 0 */
	uint32_t round;
};

/* Reserve room for one more delivery. Returns 0 or -ENOMEM. */
int delivery_table_reserve(struct delivery_table *deliveries);

/* The latest of its task; delivery_table_reserve() has made room. Returns its number, never 0. */
uint64_t delivery_table_insert(struct delivery_table *deliveries, struct task *task,
                               uint64_t periods);

/* NULL: ended. Valid until the next delivery_table_reserve(). */
struct delivery *delivery_table_find(const struct delivery_table *deliveries, uint64_t delivery);

/* Returns whether the delivery `held` is the latest delivery of its task. */
bool deliveries_is_latest(const struct delivery_table *deliveries, const struct delivery *held);

/* Frees an ended task without another delivery. */
void delivery_table_remove(struct delivery_table *deliveries, struct tasks *tasks,
                           struct delivery *held);

/* End all deliveries and free the memory of the table. */
void delivery_table_fini(struct delivery_table *deliveries, struct tasks *tasks);

#endif
