/* SPDX-License-Identifier: MIT */
/*
 * The records of one write, and their transactions. Callers fill the open batch, under the lock,
 * while the leader writes the previous one, which is his.
 */
#ifndef JOURNAL_WRITE_BATCH_H
#define JOURNAL_WRITE_BATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "journal/record.h"
#include "journal/task.h"

/* Of one task: `task` is a put's new one; others name theirs by delivery, key or id. */
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

/* Changes made together or not at all. The struct is the caller's again when it has ended. */
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
	/* or NULL: only records of deliveries, which need no sync */
	struct transaction *first;
	struct transaction *last;
};

/* Allocate an empty batch for `capacity` bytes of records. Returns 0 or -ENOMEM. */
int write_batch_init(struct write_batch *batch, size_t capacity);

void write_batch_fini(struct write_batch *batch);

/* Empty the batch and give it a number. */
void write_batch_begin(struct write_batch *batch, uint32_t number);

bool write_batch_has_room(const struct write_batch *batch, size_t bytes);

/* There must be room. Returns the offset. */
size_t write_batch_add(struct write_batch *batch, const struct record *record);

/* Add a transaction whose records are in the batch already. */
void write_batch_add_transaction(struct write_batch *batch, struct transaction *transaction);

/*
 * All with a put, and with `only_ends` all but those that only end tasks; also the records of
 * deliveries. Returns the list.
 */
struct transaction *write_batch_take_out(struct write_batch *batch, bool only_ends);

#endif
