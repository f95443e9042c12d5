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
	/* The position of the next handle to take. Consumers move it. */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 head;
	/* Where the handles end that consumers may take, and the flag TAIL_COMPACTING. */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 tail;
	/*
	 * The position of the next cell to fill, and `head` when it was last read: the owner's own.
	 */
	_Alignas(CACHE_LINE_BYTES) uint64_t put;
	uint64_t head_seen;
};

/*
 * Opens an outbox for a hub in which at most `capacity` timers can have expired at once. `outbox`
 * must be zeroed. Returns 0 or -ENOMEM.
 */
int outbox_open(struct outbox *outbox, uint32_t capacity);

/* Gives back the memory. */
void outbox_close(struct outbox *outbox);

/* ---- calls of the owner ---- */

/*
 * Tells whether there is room for one more handle. If there is none, outbox_compact() makes some.
 */
bool outbox_has_room(struct outbox *outbox);

/* Stores a handle, which consumers see after outbox_publish(). Returns its position. */
uint64_t outbox_put(struct outbox *outbox, uint64_t handle);

/* Fetches what the next put and its publication will touch, and a consumer has touched last. */
CPU_FETCHES void outbox_fetch(const struct outbox *outbox)
{
	__builtin_prefetch(&outbox->cells[outbox->put & outbox->mask], 1);
	__builtin_prefetch(&outbox->tail, 1);
}

/*
 * Blanks a handle if it is still at `place`, of which the low 32 bits are enough. The owner does it
 * before it puts a newer handle of the same timer, so that nobody gets both.
 */
void outbox_blank(struct outbox *outbox, uint64_t handle, uint32_t place);

/* Lets consumers take everything that was put so far. */
void outbox_publish(struct outbox *outbox);

/* Decides in a compaction whether a handle stays. If so, it goes to the position `new_place`. */
typedef bool outbox_keep_fn(void *context, uint64_t handle, uint64_t new_place);

/*
 * Takes all handles out, and puts those that `keep` wants back in the same order. Returns how many
 * these are. Until the next outbox_publish() the outbox looks empty to consumers, but
 * outbox_exhausted() says that it is not.
 */
unsigned outbox_compact(struct outbox *outbox, outbox_keep_fn *keep, void *context);

/* ---- calls of any thread ---- */

/* Takes up to `max` of the oldest handles. Returns how many. */
unsigned outbox_take(struct outbox *outbox, uint64_t *handles, unsigned max);

/*
 * Takes up to `max` of the oldest handles from before the position `end`, and returns how many.
 * Unless that is 0, *ret_tail is where the published handles ended at that time.
 */
unsigned outbox_take_before(struct outbox *outbox, uint64_t end, uint64_t *handles, unsigned max,
                            uint64_t *ret_tail);

/* Returns about how many handles there are, and 0 only if the outbox is empty. */
uint64_t outbox_count(const struct outbox *outbox);

/* Tells whether the outbox is empty, and no compaction is about to put handles back. */
bool outbox_exhausted(const struct outbox *outbox);

#endif
