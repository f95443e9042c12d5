/* SPDX-License-Identifier: MIT */
/* See batch.h. Tested through every durable call; batch_take_out() through full disks. */
#include "journal/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int batch_init(struct batch *batch, size_t capacity)
{
	*batch = (struct batch){ .bytes = malloc(capacity), .capacity = capacity };
	return batch->bytes ? 0 : -ENOMEM;
}

void batch_fini(struct batch *batch)
{
	free(batch->bytes);
}

void batch_begin(struct batch *batch, uint32_t number)
{
	*batch = (struct batch){
		.bytes = batch->bytes,
		.capacity = batch->capacity,
		.number = number,
	};
}

bool batch_has_room(const struct batch *batch, size_t bytes)
{
	return bytes <= batch->capacity - batch->used;
}

size_t batch_add(struct batch *batch, const struct record *record)
{
	size_t at = batch->used;

	record_encode(batch->bytes + at, record);
	batch->used += record_size(record);
	batch->records++;
	return at;
}

void batch_add_request(struct batch *batch, struct request *request)
{
	request->next = NULL;
	batch->waiting += !request->async;
	if (batch->last)
		batch->last->next = request;
	else
		batch->first = request;
	batch->last = request;
}

/* ---- taking out ---- */

static bool batch_may_stay(const struct request *request, bool only_ends)
{
	bool ends = true, puts = false;

	for (unsigned i = 0; i < request->count; i++) {
		enum record_type type = request->changes[i].type;

		ends = ends && (type == RECORD_DONE || type == RECORD_CANCEL);
		puts = puts || type == RECORD_PUT;
	}
	return only_ends ? ends : !puts;
}

/* Move the bytes of a request's records to the batch's new end. */
static void batch_keep(struct batch *batch, struct request *request)
{
	for (unsigned i = 0; i < request->count; i++) {
		struct change *change = &request->changes[i];
		size_t bytes = record_size_at(batch->bytes + change->at);

		memmove(batch->bytes + batch->used, batch->bytes + change->at, bytes);
		change->at = batch->used;
		batch->used += bytes;
		batch->records++;
	}
	batch_add_request(batch, request);
}

struct request *batch_take_out(struct batch *batch, bool only_ends)
{
	struct request *out = NULL, **end = &out, *next;
	struct request *request = batch->first;

	/* Records of no request, which count deliveries, go too. */
	batch_begin(batch, batch->number);
	for (; request; request = next) {
		next = request->next;
		if (batch_may_stay(request, only_ends)) {
			batch_keep(batch, request);
			continue;
		}
		request->next = NULL;
		*end = request;
		end = &request->next;
	}
	return out;
}
