/* SPDX-License-Identifier: MIT */
/*
 * Records on their way to the disk, and their transactions. Callers fill the open batch while a
 * leader writes the previous batch. An open batch is under the journal's lock. A batch that is
 * written belongs to its leader.
 */
#ifndef JOURNAL_BATCH_H
#define JOURNAL_BATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "journal/record.h"
#include "journal/task.h"

/*
 * One change of one task. A put has the new task in `task`. Any other change names its task by a
 * delivery, a key, or an id.
 */
struct change {
	enum record_type type;
	struct task *task;
	uint64_t id;
	const void *key;
	size_t key_len;
	uint64_t delivery;     /* that it ends; 0: none */
	uint64_t due_ns;       /* the new due time, if any */
	uint32_t reason;       /* of PARK */
	uint32_t body_crc;     /* of PUT */
	uint64_t lease_end_ns; /* where the task goes back to if the change is refused */
	size_t at;             /* its record in the batch */
};

/*
 * A transaction: all of its changes are made, or none. It belongs to its caller again when it has
 * ended.
 */
struct transaction {
	struct transaction *next;
	struct change *changes;
	unsigned count;
	int result;   /* by the leader */
	bool async;   /* no thread waits: the completions own the transaction */
	uint64_t tag; /* the caller's, for the completion */
};

struct batch {
	uint8_t *bytes;
	size_t used;
	size_t capacity;
	uint32_t records;
	uint32_t number;
	uint32_t waiting;          /* transactions whose callers wait, and may lead */
	struct transaction *first; /* NULL: only records of deliveries, so no sync is needed */
	struct transaction *last;
};

/* 0 or -ENOMEM. */
int batch_init(struct batch *batch, size_t capacity);

void batch_fini(struct batch *batch);

/* Begin the batch of that number, empty. */
void batch_begin(struct batch *batch, uint32_t number);

bool batch_has_room(const struct batch *batch, size_t bytes);

/* Add a record, for which there is room. Returns where it is. */
size_t batch_add(struct batch *batch, const struct record *record);

/* Add a transaction, whose records are in the batch. */
void batch_add_transaction(struct batch *batch, struct transaction *transaction);

/*
 * Take out every transaction that puts, because it needs room on the disk. If `only_ends`, take out
 * every transaction and record that does not end a task. Returns the list of transactions taken
 * out.
 */
struct transaction *batch_take_out(struct batch *batch, bool only_ends);

#endif
