/* SPDX-License-Identifier: MIT */
/*
 * The handles of expired timers, from the owner to consumers, in order of expiry; lock-free. A
 * handle is a hint: the pair decides. A withdrawn expiry leaves a stale handle; the owner removes
 * them when it is full. It has twice the cells that live handles need.
 */
#ifndef TIMERHUB_OUTBOX_H
#define TIMERHUB_OUTBOX_H

#include "base/atomic.h"
#include "base/bits.h"
#include "base/memory.h"

struct outbox {
	atomic_u64 *cells;    /* handles, written by the owner */
	uint64_t mask;        /* cells, minus one */
	struct memory memory; /* mapping that holds the cells */
	/* next to take; consumers and owner */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 head;
	/* end of the published, and a flag; owner */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 tail;
	_Alignas(CACHE_LINE_BYTES) uint64_t put; /* next position that the owner fills */
	uint64_t head_seen; /* head when the owner last read it; only the owner uses it */
};

/* 0 or -ENOMEM. `outbox` is zeroed; at most `capacity` timers are pending at once. */
int outbox_open(struct outbox *outbox, uint32_t capacity);
void outbox_close(struct outbox *outbox);

/* Owner: is a cell free? If not, outbox_compact() frees some. */
bool outbox_has_room(struct outbox *outbox);

/* Owner: to be published later. Returns the position. */
uint64_t outbox_put(struct outbox *outbox, uint64_t handle);

/*
 * Owner: make this handle 0 if it is still at `place` (modulo 2^32), so that it comes to nobody
 * beside a later handle of the timer.
 */
void outbox_blank(struct outbox *outbox, uint64_t handle, uint32_t place);

/* Owner: show consumers what was put. */
void outbox_publish(struct outbox *outbox);

/*
 * Owner: take all out, and put back in order, at `new_place`, those that `keep` wants. Until the
 * next outbox_publish(), a take returns 0 and outbox_exhausted() false. Returns how many were put
 * back.
 */
typedef bool outbox_keep_fn(void *context, uint64_t handle, uint64_t new_place);
unsigned outbox_compact(struct outbox *outbox, outbox_keep_fn *keep, void *context);

/* Up to `max`, the oldest first. Any thread, like all below. */
unsigned outbox_take(struct outbox *outbox, uint64_t *handles, unsigned max);

/* Only before `end`. If the result is not 0, `*ret_tail` is the end that the call saw. */
unsigned outbox_take_before(struct outbox *outbox, uint64_t end, uint64_t *handles, unsigned max,
                            uint64_t *ret_tail);

/* An estimate, 0 only if it is empty. */
uint64_t outbox_count(const struct outbox *outbox);

/* Empty, and nothing will be put back. */
bool outbox_exhausted(const struct outbox *outbox);

#endif
