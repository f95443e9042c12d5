/* SPDX-License-Identifier: MIT */
/*
 * Declares a batch: the records of one write to the disk, and their transactions. Callers fill the
 * open batch while the leader writes the previous batch. The journal's lock protects the open
 * batch. The batch that is being written belongs to the leader.
 */
#ifndef JOURNAL_WRITE_BATCH_H
#define JOURNAL_WRITE_BATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "journal/record.h"
#include "journal/task.h"

/*
 * A change of one task. If the change is a put, `task` is the new task. A change other than a put
 * names its task by a delivery, a key, or an id.
 */
struct change {
	enum record_type type;
	struct task *task;
	uint64_t id;
	const void *key;
	size_t key_len;
	uint64_t delivery; /* number of the delivery that the change ends, or 0 */
	uint64_t due_ns;   /* the new due time, if the change sets one */
	uint32_t reason;   /* why the task is parked, in a PARK record */
	/* Checksum of the body of the new task's record, in a PUT record. */
	uint32_t body_crc;
	/* The end of the task's lease, which is restored if the change is refused. */
	uint64_t lease_end_ns;
	size_t at; /* offset of the change's record in the batch */
};

/*
 * One or more changes of tasks that are made together or not at all. When the transaction has
 * ended, the struct belongs to the transaction's caller again.
 */
struct transaction {
	struct transaction *next;
	struct change *changes;
	unsigned count;
	int result; /* outcome of the transaction, set by the leader */
	/* No thread waits. The leader adds the transaction's outcome to the list of completions. */
	bool async;
	uint64_t tag; /* a number that the caller gave, returned in the completion */
};

struct write_batch {
	uint8_t *bytes;
	size_t used;
	size_t capacity;
	uint32_t records;
	uint32_t number;
	uint32_t waiting; /* number of transactions whose callers wait for the batch */
	/*
	 * First transaction, or NULL. A batch without a transaction has only records of deliveries,
	 * and needs no sync.
	 */
	struct transaction *first;
	struct transaction *last;
};

/* Allocate an empty batch for `capacity` bytes of records. Returns 0 or -ENOMEM. */
int write_batch_init(struct write_batch *batch, size_t capacity);

void write_batch_fini(struct write_batch *batch);

/* Empty the batch and give it a number. */
void write_batch_begin(struct write_batch *batch, uint32_t number);

bool write_batch_has_room(const struct write_batch *batch, size_t bytes);

/*
 * Add a record to the batch, which must have room for the record. Returns the record's offset in
 * the batch.
 */
size_t write_batch_add(struct write_batch *batch, const struct record *record);

/* Add a transaction whose records are in the batch already. */
void write_batch_add_transaction(struct write_batch *batch, struct transaction *transaction);

/*
 * Remove every transaction that has a put. If `only_ends` is true, keep a transaction only if each
 * of its changes ends a task. Also remove the records of deliveries, which belong to no
 * transaction. Returns the list of removed transactions.
 */
struct transaction *write_batch_take_out(struct write_batch *batch, bool only_ends);

#endif
