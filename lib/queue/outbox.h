/* SPDX-License-Identifier: MIT */
/*
 * The outbox: a ring buffer in which the owner leaves the handles of expired timers, in order, and
 * from which any number of consumers take them.
 *
 * A handle is only a hint. If its timer is cancelled or re-armed before somebody takes the event,
 * the handle stays here and is stale. The ring therefore has twice the cells that live handles
 * need, and when it is full the owner compacts it, which removes the stale ones.
 */
#ifndef TIMERHUB_OUTBOX_H
#define TIMERHUB_OUTBOX_H

#include "base/atomic.h"
#include "base/bits.h"
#include "base/cpu.h"
#include "base/memory.h"

struct outbox {
	atomic_u64 *cells; /* the handles; a cell that was blanked has 0, which is no handle */
	uint64_t mask;     /* number of cells - 1 */
	struct memory memory;
	/*
	 * The position of the oldest timer handle. A consumer that takes handles moves the head
	 * past them.
	 */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 head;
	/*
	 * The position after the last published handle. The highest bit, TAIL_COMPACTING, marks a
	 * compaction.
	 */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 tail;
	/* The position of the next handle to be stored. Only the owner uses it. */
	_Alignas(CACHE_LINE_BYTES) uint64_t put;
	uint64_t head_seen; /* what `head` was when the owner last read it */
};

/* Opens a zeroed outbox for at most `capacity` timers that have expired. Returns 0 or -ENOMEM. */
int outbox_open(struct outbox *outbox, uint32_t capacity);

void outbox_close(struct outbox *outbox);

/* ---- calls of the owner ---- */

/* Tells whether one more handle fits. If not, the owner must call outbox_compact(). */
bool outbox_has_room(struct outbox *outbox);

/* Stores a handle, and returns its position. Consumers see it after the next outbox_publish(). */
uint64_t outbox_put(struct outbox *outbox, uint64_t handle);

/* Prefetches what the next put and publish will write, which a consumer's CPU has used last. */
CPU_FETCHES void outbox_fetch(const struct outbox *outbox)
{
	__builtin_prefetch(&outbox->cells[outbox->put & outbox->mask], 1);
	__builtin_prefetch(&outbox->tail, 1);
}

/* Removes a timer's old handle, if it is still at the position with these low 32 bits. */
void outbox_blank(struct outbox *outbox, uint64_t handle, uint32_t place);

/* Lets consumers take all handles that the owner has stored so far. */
void outbox_publish(struct outbox *outbox);

/* Returns true if outbox_compact() must keep a handle, which then moves to `new_place`. */
typedef bool outbox_keep_fn(void *context, uint64_t handle, uint64_t new_place);

/*
 * Removes the handles that `keep` refuses, and returns how many are left, for the next
 * outbox_publish().
 */
unsigned outbox_compact(struct outbox *outbox, outbox_keep_fn *keep, void *context);

/* ---- calls of any thread ---- */

/* Takes up to `max` handles from the outbox, the oldest first, and returns how many. */
unsigned outbox_take(struct outbox *outbox, uint64_t *handles, unsigned max);

/*
 * Takes up to `max` handles before the position `end`. Stores in *ret_tail where the published
 * handles ended.
 */
unsigned outbox_take_before(struct outbox *outbox, uint64_t end, uint64_t *handles, unsigned max,
                            uint64_t *ret_tail);

/* Returns how many handles are in the outbox. The number may be too high, but never too low. */
uint64_t outbox_count(const struct outbox *outbox);

/* Tells whether the outbox is empty. It is not while the owner compacts it. */
bool outbox_exhausted(const struct outbox *outbox);

#endif
