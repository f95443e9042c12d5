/* SPDX-License-Identifier: MIT */
/*
 * Declares a task in memory: one allocation, with the task's data and key behind the struct. A task
 * takes 80 bytes, 16 in an agenda, 16 in the agenda of leases, and 8 in each table. With the
 * allocator's overhead it may take 144. The journal's lock protects every field. Id, interval, data
 * and key never change.
 */
#ifndef JOURNAL_TASK_H
#define JOURNAL_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum task_state {
	TASK_PENDING,  /* in the agenda of tasks to come, by due_ns */
	TASK_TAKEN,    /* a worker has it; in the agenda of leases if leases end */
	TASK_PARKED,   /* not delivered until it is renewed; in no agenda */
	TASK_ARRIVING, /* its put is in flight; in no agenda */
	TASK_ENDED,    /* done or cancelled; in no table, and kept only for its deliveries */
};

#define TASK_NOWHERE UINT32_MAX /* agenda_index of a task in no agenda */

struct task {
	uint64_t id;
	uint64_t due_ns;          /* CLOCK_REALTIME; UINT64_MAX: never */
	uint64_t interval_ns;     /* 0: not periodic */
	struct task *next;        /* in its bucket of the table of ids */
	struct task *next_by_key; /* in its bucket of the table of keys, if it has a key */
	uint32_t segment;  /* where its data is on disk: the segment's number, cut to 32 bits */
	uint32_t offset8;  /* the record's offset in the segment, divided by 8 */
	uint32_t attempts; /* deliveries so far; saturates */
	uint32_t reason;   /* of a parked task */
	uint32_t data_len;
	union {
		uint32_t agenda_index; /* its index in its agenda, or TASK_NOWHERE */
		uint32_t batch;        /* while `changing`: the batch that its change is in */
	};
	uint32_t latest;  /* the latest delivery's place, plus 1; 0: it is over */
	uint32_t holders; /* deliveries that hold it */
	uint8_t state;    /* enum task_state */
	uint8_t changing; /* 1: a change of the task is in flight, and the task is in no agenda */
	uint8_t key_len;
	_Alignas(16) unsigned char bytes[]; /* the data, then the key */
};

static inline const unsigned char *task_data(const struct task *task)
{
	return task->bytes;
}

/* Returns NULL if the task has no key. */
static inline const unsigned char *task_key(const struct task *task)
{
	return task->key_len > 0 ? task->bytes + task->data_len : NULL;
}

#endif
