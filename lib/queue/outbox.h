/* SPDX-License-Identifier: MIT */
/*
 * From the owner to consumers: the handles of expired timers, in order. Withdrawn expiries leave
 * stale ones, so it has twice the cells that live handles need, and the owner compacts a full one.
 */
#ifndef TIMERHUB_OUTBOX_H
#define TIMERHUB_OUTBOX_H

#include "base/atomic.h"
#include "base/bits.h"
#include "base/cpu.h"
#include "base/memory.h"

struct outbox {
	atomic_u64 *cells; /* handles; 0, which is none: blanked */
	uint64_t mask;
	struct memory memory;
	/* next to take */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 head;
	/* end of the published | TAIL_COMPACTING */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 tail;
	_Alignas(CACHE_LINE_BYTES) uint64_t put; /* owner's alone: next to fill */
	uint64_t head_seen;                      /* `head` when last read */
};

/* 0 or -ENOMEM. `outbox` is zeroed; at most `capacity` timers are pending at once. */
int outbox_open(struct outbox *outbox, uint32_t capacity);
void outbox_close(struct outbox *outbox);

/* If not, outbox_compact() frees some. By the owner, like all to outbox_compact(). */
bool outbox_has_room(struct outbox *outbox);

/* To be published later. Returns the position. */
uint64_t outbox_put(struct outbox *outbox, uint64_t handle);

/* What the next put and its publication will touch, last used by a consumer. */
CPU_FETCHES void outbox_fetch(const struct outbox *outbox)
{
	__builtin_prefetch(&outbox->cells[outbox->put & outbox->mask], 1);
	__builtin_prefetch(&outbox->tail, 1);
}

/*
 * If the handle is still at `place` (modulo 2^32), so that nobody gets it beside the timer's next.
 */
void outbox_blank(struct outbox *outbox, uint64_t handle, uint32_t place);

void outbox_publish(struct outbox *outbox);

/*
 * Take all out, and put back in order, at `new_place`, those that `keep` wants; returns their
 * number. Until the next outbox_publish() a take returns 0 and outbox_exhausted() false.
 */
typedef bool outbox_keep_fn(void *context, uint64_t handle, uint64_t new_place);
unsigned outbox_compact(struct outbox *outbox, outbox_keep_fn *keep, void *context);

/* The oldest. By any thread, like all below. */
unsigned outbox_take(struct outbox *outbox, uint64_t *handles, unsigned max);

/* Only before position `end`. Unless it returns 0, `*ret_tail` is the tail that it saw. */
unsigned outbox_take_before(struct outbox *outbox, uint64_t end, uint64_t *handles, unsigned max,
                            uint64_t *ret_tail);

/* An estimate, 0 only if it is empty. */
uint64_t outbox_count(const struct outbox *outbox);

/* Empty, and nothing will be put back. */
bool outbox_exhausted(const struct outbox *outbox);

#endif
