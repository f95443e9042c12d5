/* SPDX-License-Identifier: MIT */
/*
 * Keeps the deliveries that workers have not yet answered. A delivery keeps its task in memory
 * until the worker acknowledges, returns, parks or releases the delivery. Even a task that has
 * ended stays in memory until all its deliveries have ended. A task may have several deliveries.
 * Only the latest delivery of a task may change the task. The caller of each function holds the
 * journal's lock.
 */
#ifndef JOURNAL_DELIVERY_TABLE_H
#define JOURNAL_DELIVERY_TABLE_H

#include "journal/tasks.h"

struct delivery {
	struct task *task; /* the delivered task, or NULL if the element is free */
	/* Number of periods that the delivery covers, or 1 if the task is not periodic. */
	uint64_t periods;
	/*
	 * Upper half of the delivery's number, from a counter of deliveries. Until the counter
	 * wraps, two deliveries at the same index of the table have different upper halves.
	 */
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

/*
 * Add a delivery, which becomes the latest delivery of its task. The table must have room, which
 * delivery_table_reserve() makes. Returns the delivery's number, which is never 0.
 */
uint64_t delivery_table_insert(struct delivery_table *deliveries, struct task *task,
                               uint64_t periods);

/*
 * Returns the delivery with the number `delivery`, or NULL if the delivery has ended. The returned
 * pointer is valid until the next delivery_table_reserve().
 */
struct delivery *delivery_table_find(const struct delivery_table *deliveries, uint64_t delivery);

/* Returns whether the delivery `held` is the latest delivery of its task. */
bool deliveries_is_latest(const struct delivery_table *deliveries, const struct delivery *held);

/* End a delivery. If the delivery's task has ended and has no other delivery, free the task. */
void delivery_table_remove(struct delivery_table *deliveries, struct tasks *tasks,
                           struct delivery *held);

/* End all deliveries and free the memory of the table. */
void delivery_table_fini(struct delivery_table *deliveries, struct tasks *tasks);

#endif
