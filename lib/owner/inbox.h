/* SPDX-License-Identifier: MIT */
/*
 * The inbox carries slots from callers to the owner: "look at slot 17".
 *
 * A caller can be a signal handler, and any other can be preempted in the middle of a push and not
 * run again for a long time. So a push must never wait for another thread, and can never be
 * refused. Two structures together do that. A lane is a small ring buffer for the threads on some
 * of the CPUs. If it is full, the push sets the slot's bit in the spill map, which has a bit for
 * each slot of the hub and so is never full; above it are two levels of summary bits.
 *
 * A slot may wait in several places at once. The owner then looks at it several times, which does
 * no harm, because what to do is decided by the timer's pair.
 */
#ifndef TIMERHUB_INBOX_H
#define TIMERHUB_INBOX_H

#include "base/memory.h"
#include "owner/lane.h"
#include "owner/spill_map.h"

struct inbox {
	struct inbox_lane *lanes;
	uint32_t lane_mask; /* number of lanes - 1 */
	struct spill_map map;
	struct memory memory;
};

/*
 * Opens an inbox for so many slots. `notes` has BOARD_LANES_MAX elements, or is NULL if the hub is
 * not observable. Returns 0 or -ENOMEM.
 */
int inbox_open(struct inbox *inbox, uint32_t capacity, struct board_lane *notes);

/* Gives back the memory. */
void inbox_close(struct inbox *inbox);

/*
 * Pushes a slot. Any thread can call it, and so can a signal handler. Returns true if so many slots
 * wait that the owner should be woken; only one call in several hundred checks that.
 */
bool inbox_push(struct inbox *inbox, unsigned cpu, uint32_t slot);

/*
 * Pushes a slot that probably waits already. It goes into the map, where a second push of the same
 * slot takes no more room. Returns what inbox_push() returns.
 */
bool inbox_push_again(struct inbox *inbox, unsigned cpu, uint32_t slot);

/* Tells whether a slot waits in the map, so that it need not be pushed. */
static inline bool inbox_waits(const struct inbox *inbox, uint32_t slot)
{
	return map_has(&inbox->map, slot);
}

/* ---- calls of the owner ---- */

/*
 * Begins a drain of everything that was pushed before this call. inbox_take() must then be called
 * until it returns 0, before the next drain begins.
 */
void inbox_begin(struct inbox *inbox);

/* Takes up to `max` slots, and returns how many. 0 means that the drain has ended. */
unsigned inbox_take(struct inbox *inbox, uint32_t *slots, unsigned max);

/* Tells whether nothing waits. */
bool inbox_empty(const struct inbox *inbox);

#endif
