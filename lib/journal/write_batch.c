/* SPDX-License-Identifier: MIT */
/* Tests with a full disk use write_batch_take_out(), all others the rest. */
#include "journal/write_batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int write_batch_init(struct write_batch *batch, size_t capacity)
{
	*batch = (struct write_batch){ .bytes = malloc(capacity), .capacity = capacity };
	return batch->bytes ? 0 : -ENOMEM;
}

void write_batch_fini(struct write_batch *batch)
{
	free(batch->bytes);
}

void write_batch_begin(struct write_batch *batch, uint32_t number)
{
	*batch = (struct write_batch){
		.bytes = batch->bytes,
		.capacity = batch->capacity,
		.number = number,
	};
}

bool write_batch_has_room(const struct write_batch *batch, size_t bytes)
{
	return bytes <= batch->capacity - batch->used;
}

size_t write_batch_add(struct write_batch *batch, const struct record *record)
{
	size_t at = batch->used;

	record_encode(batch->bytes + at, record);
	batch->used += record_size(record);
	batch->records++;
	return at;
}

void write_batch_add_transaction(struct write_batch *batch, struct transaction *transaction)
{
	transaction->next = NULL;
	batch->waiting += !transaction->async;
	if (batch->last)
		batch->last->next = transaction;
	else
		batch->first = transaction;
	batch->last = transaction;
}

/* ---- remove transactions ---- */

static bool batch_may_stay(const struct transaction *transaction, bool only_ends)
{
	bool ends = true, puts = false;

	for (unsigned i = 0; i < transaction->count; i++) {
		enum record_type type = transaction->changes[i].type;

		ends = ends && (type == RECORD_DONE || type == RECORD_CANCEL);
		puts = puts || type == RECORD_PUT;
	}
	return only_ends ? ends : !puts;
}

/* Its records move to the batch's new end. */
static void batch_keep(struct write_batch *batch, struct transaction *transaction)
{
	for (unsigned i = 0; i < transaction->count; i++) {
		struct change *change = &transaction->changes[i];
		size_t bytes = record_size_at(batch->bytes + change->at);

		memmove(batch->bytes + batch->used, batch->bytes + change->at, bytes);
		change->at = batch->used;
		batch->used += bytes;
		batch->records++;
	}
	write_batch_add_transaction(batch, transaction);
}

struct transaction *write_batch_take_out(struct write_batch *batch, bool only_ends)
{
	struct transaction *out = NULL, **end = &out, *next;
	struct transaction *transaction = batch->first;

	/* emptied, and the kept ones added again; records of deliveries belong to none */
	write_batch_begin(batch, batch->number);
	for (; transaction; transaction = next) {
		next = transaction->next;
		if (batch_may_stay(transaction, only_ends)) {
			batch_keep(batch, transaction);
			continue;
		}
		transaction->next = NULL;
		*end = transaction;
		end = &transaction->next;
	}
	return out;
}
