/* SPDX-License-Identifier: MIT */
/*
 * Owner → consumers: handles of expired timers, in the order in which they fell due. One producer,
 * many consumers, lock-free.
 *
 * A handle in here is only a hint that its timer may be pending; the timer's state word says
 * whether it is. So a withdrawn expiry leaves its handle behind, and the owner clears such handles
 * out when there is no more room; there is twice the room that live handles can need.
 */
#ifndef TIMERHUB_OUTBOX_H
#define TIMERHUB_OUTBOX_H

#include "base/atomic.h"
#include "base/bits.h"
#include "base/memory.h"

struct outbox {
	atomic_u64 *cells;                          /* handles; the owner writes */
	uint64_t mask;                              /* cells less one */
	struct memory memory;                       /* holds the cells */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 head; /* next place to take; consumers move it */
	_Alignas(CACHE_LINE_BYTES)
		atomic_u64 tail; /* places before it may be taken, and a flag; the owner writes */
	_Alignas(CACHE_LINE_BYTES) uint64_t put; /* next place to fill; the owner's alone */
	uint64_t head_seen; /* the head when the owner last looked; the owner's alone */
};

/* 0, or -ENOMEM. `capacity`: timers that can be pending at once. */
int outbox_open(struct outbox *outbox, uint32_t capacity);
void outbox_close(struct outbox *outbox);

/* Owner: is there room for one more? If not, outbox_compact() makes some. */
bool outbox_has_room(struct outbox *outbox);

/*
 * Owner: put a handle; there must be room. It can be taken after outbox_publish(). Tells the
 * place.
 */
uint64_t outbox_put(struct outbox *outbox, uint64_t handle);

/* Owner: let consumers see what was put. */
void outbox_publish(struct outbox *outbox);

/*
 * Owner: take out everything and put back, in order, what `keep` says is still wanted at that
 * place. `keep` is told the place that it had, and the one that it gets if `keep` returns true.
 * Until the next outbox_publish() consumers find the outbox empty, but not exhausted. Returns how
 * many were put back.
 */
typedef bool outbox_keep_fn(void *context, uint64_t handle, uint64_t old_place, uint64_t new_place);
unsigned outbox_compact(struct outbox *outbox, outbox_keep_fn *keep, void *context);

/* Any thread: take up to `max` handles, the oldest first. */
unsigned outbox_take(struct outbox *outbox, uint64_t *handles, unsigned max);

/* Any thread: how many there are to take, about; 0 only if there is nothing. */
uint64_t outbox_count(const struct outbox *outbox);

/* Any thread: is there nothing to take? */
bool outbox_empty(const struct outbox *outbox);

/* Any thread: is there nothing to take, and nothing that the owner took out to put it back? */
bool outbox_exhausted(const struct outbox *outbox);

#endif
