/* SPDX-License-Identifier: MIT */
/*
 * Records on their way to the disk, and the requests that wait for them. Callers fill one batch
 * while a leader writes another. Under the journal's lock while it gathers; the leader's then.
 */
#ifndef JOURNAL_BATCH_H
#define JOURNAL_BATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "journal/record.h"
#include "journal/task.h"

/*
 * One change of one task. Callers say which: a put brings it along; else it is named by a delivery,
 * by a key, or by its id.
 */
struct change {
	enum record_type type;
	struct task *task;
	uint64_t id;
	const void *key;
	size_t key_len;
	uint64_t delivery;     /* that it ends; 0: none */
	uint64_t due_ns;       /* the new one, if it has one */
	uint32_t reason;       /* of PARK */
	uint32_t body_crc;     /* of PUT */
	uint64_t lease_end_ns; /* where the task goes back to if the change is refused */
	size_t at;             /* its record in the batch */
};

/* Changes that count together or not at all; the caller's again when it is done. */
struct request {
	struct request *next;
	struct change *changes;
	unsigned count;
	int result;   /* by the leader */
	bool async;   /* no thread waits for it: it goes to the completions, which own it */
	uint64_t tag; /* the caller's, for the completion */
};

struct batch {
	uint8_t *bytes;
	size_t used;
	size_t capacity;
	uint32_t records;
	uint32_t number;
	uint32_t waiting;      /* requests whose callers wait, any of which may lead */
	struct request *first; /* NULL: no caller asks for it, so it need not be synced */
	struct request *last;
};

/* 0 or -ENOMEM. */
int batch_init(struct batch *batch, size_t capacity);

void batch_fini(struct batch *batch);

/* Begin the batch of that number, empty. */
void batch_begin(struct batch *batch, uint32_t number);

bool batch_has_room(const struct batch *batch, size_t bytes);

/* Add a record, for which there is room. Returns where it is. */
size_t batch_add(struct batch *batch, const struct record *record);

/* Add a request, whose records are in the batch. */
void batch_add_request(struct batch *batch, struct request *request);

/*
 * Take out what asks for room and gives none: every request that puts, and, if `only_ends`, every
 * request and record that does not end a task. Returns a list of the requests taken out.
 */
struct request *batch_take_out(struct batch *batch, bool only_ends);

#endif
