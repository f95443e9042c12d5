/* SPDX-License-Identifier: MIT */
/*
 * Keeps the deliveries that workers have not yet acknowledged. A delivery keeps its task in memory
 * until the worker acknowledges, returns, parks or releases the delivery, even if the task has
 * ended. A task may have several deliveries. Only the latest delivery of a task may change the
 * task. The caller of each function holds the journal's lock.
 */
#ifndef JOURNAL_DELIVERY_TABLE_H
#define JOURNAL_DELIVERY_TABLE_H

#include "journal/tasks.h"

struct delivery {
	struct task *task; /* NULL: the element is free */
	uint64_t periods;  /* periods of the task that this delivery covers */
	/* Part of the delivery's number, different from earlier deliveries at this index. */
	uint32_t round;
	uint32_t next; /* index of the next free element, plus 1; 0: none */
};

struct delivery_table {
	struct delivery *places;
	uint32_t capacity;
	uint32_t count; /* number of elements in use */
	uint32_t free;  /* index of the first free element, plus 1; 0: none */
	uint32_t round;
};

/* Reserve room for one more delivery. Returns 0 or -ENOMEM. */
int delivery_table_reserve(struct delivery_table *deliveries);

/*
 * Add a delivery, which becomes the task's latest. The table must have room
 * (delivery_table_reserve()). Returns the delivery's number, never 0.
 */
uint64_t delivery_table_insert(struct delivery_table *deliveries, struct task *task,
                               uint64_t periods);

/*
 * Returns NULL if the delivery has ended. The pointer is valid until the next
 * delivery_table_reserve().
 */
struct delivery *delivery_table_find(const struct delivery_table *deliveries, uint64_t delivery);

/* Returns whether this is the latest delivery of its task. */
bool deliveries_is_latest(const struct delivery_table *deliveries, const struct delivery *held);

/* End a delivery. An ended task is freed with its last delivery. */
void delivery_table_remove(struct delivery_table *deliveries, struct tasks *tasks,
                           struct delivery *held);

/* End all deliveries and free the memory. */
void delivery_table_fini(struct delivery_table *deliveries, struct tasks *tasks);

#endif
