/* SPDX-License-Identifier: MIT */
/*
 * One allocation with data and key behind the struct: 80 bytes, 16 in each agenda, 8 in each table,
 * with the allocator's part up to 144. All under the journal's lock; id, interval, data and key
 * never change.
 */
#ifndef JOURNAL_TASK_H
#define JOURNAL_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum task_state {
	TASK_PENDING, /* the task waits for due_ns, in the agenda of tasks */
	/* a worker has it; with leases it is in their agenda */
	TASK_TAKEN,
	TASK_PARKED,   /* the task is parked: not delivered until a call revives it; in no agenda */
	TASK_ARRIVING, /* the put of the task is in flight, and the task is in no agenda */
	/* The task is done or cancelled, and in no table; deliveries still use its memory. */
	TASK_ENDED,
};

#define TASK_NOWHERE UINT32_MAX /* in no agenda */

struct task {
	uint64_t id;
	uint64_t due_ns;      /* due time on CLOCK_REALTIME, or UINT64_MAX for never */
	uint64_t interval_ns; /* period of the task, or 0 if not periodic */
	struct task *next;    /* next task in the same bucket of the table of ids */
	/* in its bucket of the table of keys */
	struct task *next_by_key;
	uint32_t segment;  /* number of the segment that has the task's record, cut to 32 bits */
	uint32_t offset8;  /* offset of the task's record in the segment, divided by 8 */
	uint32_t attempts; /* number of deliveries so far, at most UINT32_MAX */
	uint32_t reason;   /* why the task is parked */
	uint32_t data_len;
	union {
		/* or TASK_NOWHERE; overwritten while `changing`: set it before any use */
		uint32_t agenda_index;
		uint32_t batch; /* of the change in flight, while `changing` */
	};
	/* Index of the task's latest delivery plus 1, or 0 if the delivery has ended. */
	uint32_t latest;
	uint32_t holders; /* number of the task's deliveries that have no answer */
	uint8_t state;    /* a value of enum task_state */
	uint8_t changing; /* 1: a change is in flight, and the task is in no agenda */
	uint8_t key_len;
	_Alignas(16) unsigned char bytes[]; /* the data of the task, then the key */
};

static inline const unsigned char *task_data(const struct task *task)
{
	return task->bytes;
}

/* Returns the task's key, or NULL if the task has no key. */
static inline const unsigned char *task_key(const struct task *task)
{
	return task->key_len > 0 ? task->bytes + task->data_len : NULL;
}

#endif
