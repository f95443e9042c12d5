/* SPDX-License-Identifier: MIT */
/*
 * The inbox carries the numbers of slots from the threads that change timers to the owner: "look at
 * the timer in slot 17".
 *
 * A caller can be a signal handler, and any other can be preempted in the middle of a push and not
 * run again for a long time. So a push must never wait for another thread, and must never be
 * refused. Two structures together make that possible. A lane is a small ring buffer for the
 * threads on some of the CPUs. If it is full, the push sets the slot's bit in the spill map, which
 * has a bit for each slot of the hub and so is never full; above it are two levels of summary bits.
 *
 * A slot may wait in several places at once. Then the owner looks at its timer several times, which
 * does no harm, because what it does is decided by the timer's deadline and state.
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
 * Opens an inbox for `capacity` slots. `notes` may be NULL. Otherwise it is an array of
 * BOARD_LANES_MAX elements that timerhub-top(1) reads, and the inbox counts there how many slots it
 * has got and given. Returns 0 or -ENOMEM.
 */
int inbox_open(struct inbox *inbox, uint32_t capacity, struct board_lane *notes);

void inbox_close(struct inbox *inbox);

/*
 * Puts `slot` into the inbox, so that the owner reads its timer. Signal handlers may call it.
 * Returns true if the owner should be woken because many slots wait.
 */
bool inbox_push(struct inbox *inbox, unsigned cpu, uint32_t slot);

/*
 * Like inbox_push(), but for a slot that is probably in the inbox already. Sets the slot's bit in
 * the spill map, so a repeated push takes no more room.
 */
bool inbox_push_again(struct inbox *inbox, unsigned cpu, uint32_t slot);

/*
 * Returns true if a slot is in the inbox's spill map, a bitmap from which the owner will take it.
 * Then no thread needs to push the slot again.
 */
static inline bool inbox_waits(const struct inbox *inbox, uint32_t slot)
{
	return map_has(&inbox->map, slot);
}

/* ---- calls of the owner ---- */

/*
 * Begins to take out everything that was pushed before this call. The owner must then call
 * inbox_take() until it returns 0, before it calls this again.
 */
void inbox_begin(struct inbox *inbox);

/*
 * Takes up to `max` slots out of the inbox and returns how many. 0 means that all slots that were
 * pushed before inbox_begin() have been taken.
 */
unsigned inbox_take(struct inbox *inbox, uint32_t *slots, unsigned max);

/*
 * Tells whether the inbox is empty. When the owner has made its wake-up time later, it must call
 * this before it sleeps (promise.c says why).
 */
bool inbox_empty(const struct inbox *inbox);

#endif
