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
	 * The position after the last handle that consumers may take. Its highest bit,
	 * TAIL_COMPACTING, is set while the owner removes stale handles.
	 */
	_Alignas(CACHE_LINE_BYTES) atomic_u64 tail;
	/*
	 * The position at which the owner stores the next handle, and what `head` was when the
	 * owner last read it. Only the owner uses these two.
	 */
	_Alignas(CACHE_LINE_BYTES) uint64_t put;
	uint64_t head_seen;
};

/*
 * Opens an outbox for a hub in which at most `capacity` timers can have expired at the same time.
 * The struct must be zeroed before. Returns 0 or -ENOMEM.
 */
int outbox_open(struct outbox *outbox, uint32_t capacity);

void outbox_close(struct outbox *outbox);

/* ---- calls of the owner ---- */

/*
 * Tells the owner whether one more handle fits. If not, the owner must call outbox_compact(), which
 * removes the handles of cancelled and re-armed timers.
 */
bool outbox_has_room(struct outbox *outbox);

/*
 * Stores a handle in the outbox and returns its position. Consumers can take it only after the next
 * outbox_publish().
 */
uint64_t outbox_put(struct outbox *outbox, uint64_t handle);

/*
 * Prefetches the lines of memory that the next outbox_put() and outbox_publish() will write,
 * because a consumer on another CPU has used them last.
 */
CPU_FETCHES void outbox_fetch(const struct outbox *outbox)
{
	__builtin_prefetch(&outbox->cells[outbox->put & outbox->mask], 1);
	__builtin_prefetch(&outbox->tail, 1);
}

/*
 * Removes a handle, if no consumer has taken it yet. `place` is the handle's position in the
 * outbox, cut to 32 bits.
 */
void outbox_blank(struct outbox *outbox, uint64_t handle, uint32_t place);

/* Lets consumers take all handles that the owner has stored so far. */
void outbox_publish(struct outbox *outbox);

/*
 * Decides whether outbox_compact() keeps a handle. If it returns true, the handle moves to the
 * position `new_place`.
 */
typedef bool outbox_keep_fn(void *context, uint64_t handle, uint64_t new_place);

/*
 * Removes each handle for which `keep` returns false. Returns how many handles are left. If any are
 * left, the caller must publish them again by outbox_publish(). Consumers cannot take them before.
 */
unsigned outbox_compact(struct outbox *outbox, outbox_keep_fn *keep, void *context);

/* ---- calls of any thread ---- */

/* Takes up to `max` handles from the outbox, the oldest first, and returns how many. */
unsigned outbox_take(struct outbox *outbox, uint64_t *handles, unsigned max);

/*
 * Takes up to `max` handles at positions below `end`, the oldest first. Returns how many. If it
 * takes any, it stores the position after the last published handle in *ret_tail.
 */
unsigned outbox_take_before(struct outbox *outbox, uint64_t end, uint64_t *handles, unsigned max,
                            uint64_t *ret_tail);

/*
 * Returns how many handles are in the outbox. While others take handles, the number may be too
 * high. It is 0 only if the outbox is empty, or while the owner is compacting it.
 */
uint64_t outbox_count(const struct outbox *outbox);

/* Returns true if the outbox is empty, and the owner is not compacting it. */
bool outbox_exhausted(const struct outbox *outbox);

#endif
