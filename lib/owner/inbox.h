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
 * Opens an inbox for a hub with `capacity` slots. In `notes`, the inbox counts the slots that pass
 * through it, for timerhub-top to display. `notes` has BOARD_LANES_MAX elements, or is NULL if the
 * hub is not observable. Returns 0 or -ENOMEM.
 */
int inbox_open(struct inbox *inbox, uint32_t capacity, struct board_lane *notes);

void inbox_close(struct inbox *inbox);

/*
 * Puts `slot` into the inbox, so that the owner reads the timer in this slot when it next empties
 * the inbox. Any thread can call it, and so can a signal handler. Returns true if the caller should
 * wake the owner because many slots wait. To count them takes a while, so most calls return false
 * without counting.
 */
bool inbox_push(struct inbox *inbox, unsigned cpu, uint32_t slot);

/*
 * Puts `slot` into the inbox like inbox_push(), but sets a bit in a bitmap instead of filling a
 * cell of a ring buffer. Callers use it when the slot is probably in the inbox already, because
 * pushing the same slot many times then takes no more room.
 */
bool inbox_push_again(struct inbox *inbox, unsigned cpu, uint32_t slot);

/*
 * Tells whether a slot is in the inbox's spill map, a bitmap of slots. If it is, the owner is going
 * to take it out, so no thread needs to put it into the inbox again.
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
 * Tells whether the inbox is empty. The owner must check this before it sleeps, if its new wake-up
 * time is later than the old one. A thread that has pushed a slot may have read the old time, and
 * therefore not have woken the owner, although the slot's timer is due before the new time.
 */
bool inbox_empty(const struct inbox *inbox);

#endif
