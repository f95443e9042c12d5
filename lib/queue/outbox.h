/* SPDX-License-Identifier: MIT */
/*
 * Carries the handles of expired timers from the owner to consumers, in the order of expiry. The
 * outbox has one producer and many consumers, and is lock-free. A handle in the outbox is only a
 * hint: the timer's pair decides. A withdrawn expiry leaves a stale handle. When the outbox is
 * full, the owner removes stale handles. The outbox has twice the cells that live handles can need.
 */
#ifndef TIMERHUB_OUTBOX_H
#define TIMERHUB_OUTBOX_H

#include "base/atomic.h"
#include "base/bits.h"
#include "base/memory.h"

struct outbox {
	atomic_u64 *cells;    /* the handles, written by the owner */
	uint64_t mask;        /* number of cells, minus one */
	struct memory memory; /* the mapping that holds the cells */
	/* next position to take; written by consumers and the owner */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 head;
	/* end of published positions, and a flag; written by the owner */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 tail;
	_Alignas(CACHE_LINE_BYTES) uint64_t put; /* next position that the owner fills */
	uint64_t head_seen; /* the head when the owner last read it; only the owner uses it */
};

/* Returns 0 or -ENOMEM. `outbox` must be zeroed. At most `capacity` timers are pending at once. */
int outbox_open(struct outbox *outbox, uint32_t capacity);
void outbox_close(struct outbox *outbox);

/* Owner: returns whether a cell is free. If the outbox is full, outbox_compact() frees cells. */
bool outbox_has_room(struct outbox *outbox);

/* Owner: put a handle into a free cell, to be published later. Returns the cell's position. */
uint64_t outbox_put(struct outbox *outbox, uint64_t handle);

/*
 * Owner: if this handle is still at `place`, a position modulo 2^32, make it 0. Consumers that see
 * a later handle of the timer then find no earlier one.
 */
void outbox_blank(struct outbox *outbox, uint64_t handle, uint32_t place);

/* Owner: publish the handles that were put, so that consumers see the handles. */
void outbox_publish(struct outbox *outbox);

/*
 * Owner: take out all handles, then put back in order each handle for which `keep` returns true,
 * at `new_place`. Until the next outbox_publish(), outbox_take() returns 0, and outbox_exhausted()
 * returns false. Returns the number of handles put back.
 */
typedef bool outbox_keep_fn(void *context, uint64_t handle, uint64_t new_place);
unsigned outbox_compact(struct outbox *outbox, outbox_keep_fn *keep, void *context);

/* Any thread: take up to `max` handles, the oldest first. Returns the number of handles. */
unsigned outbox_take(struct outbox *outbox, uint64_t *handles, unsigned max);

/*
 * Like outbox_take(), but take no handle at `end` or a later position. If the result is not 0,
 * `*ret_tail` is the end of the handles that this call could see.
 */
unsigned outbox_take_before(struct outbox *outbox, uint64_t end, uint64_t *handles, unsigned max,
                            uint64_t *ret_tail);

/* Any thread: returns an estimate of the number of handles in the outbox, 0 only if it is empty. */
uint64_t outbox_count(const struct outbox *outbox);

/* Any thread: returns true if the outbox is empty and the owner will put back no handle. */
bool outbox_exhausted(const struct outbox *outbox);

#endif
