/* SPDX-License-Identifier: MIT */
/*
 * The inbox carries to the owner the slots of timers that callers have changed (inbox.h). It has
 * two parts, the lanes (lane.c) and the map (spill_map.c). A slot goes into the lane of its
 * thread's CPU, or into the map if that lane is full or the slot probably waits already.
 *
 *   producer                                      owner
 *   advance the tail, or find it moved            make a promise, begin a pass
 *   fill the cell; or set bits, or find them set  load the tails: the ends of the drain
 *   load the promise, the pass                    load cells before the ends; take words
 *
 * All of these are seq_cst, so no wake-up is lost: if a producer loads the promise or the pass
 * before the owner stores a new one, the drain that follows finds the slot. That is also true of a
 * producer that has only found a cell filled, or bits set, by others.
 */
#include "owner/inbox.h"

#include "base/cpu.h"

#define INBOX_LANES_MAX BOARD_LANES_MAX
/* A hub has several lanes only if there are at least so many slots for each of them. */
#ifndef INBOX_LANE_SLOTS_MIN
#define INBOX_LANE_SLOTS_MIN 256
#endif
/*
 * When so many slots wait in the inbox, a caller wakes the owner although no timer is due. The
 * owner schedules what waits before it expires timers, so a longer inbox would make them late:
 * 8,192 slots take 0.3 ms. The wake-up costs 14 us, which is 2 ns for each of them.
 */
#ifndef INBOX_MANY
#define INBOX_MANY 8192
#endif
/*
 * A producer counts what waits in the inbox only at each so many-th push of a lane, because to
 * count means to read all lanes.
 */
#ifndef INBOX_ASK
#define INBOX_ASK 512
#endif

int inbox_open(struct inbox *inbox, uint32_t capacity, struct board_lane *notes)
{
	uint64_t lanes = cpu_parts(capacity, INBOX_LANES_MAX, INBOX_LANE_SLOTS_MIN);
	atomic_u64 *next;
	int result;

	result = memory_reserve(&inbox->memory, lanes * (sizeof(struct inbox_lane) +
	                                                 INBOX_LANE_CELLS * sizeof(atomic_u64)) +
	                                                map_words(capacity) * sizeof(atomic_u64));
	if (result < 0)
		return result;
	inbox->lanes = inbox->memory.base;
	inbox->lane_mask = (uint32_t)lanes - 1;
	next = (atomic_u64 *)(void *)(inbox->lanes + lanes);
	for (uint64_t i = 0; i < lanes; i++, next += INBOX_LANE_CELLS) {
		inbox->lanes[i].cells = next;
		inbox->lanes[i].notes = notes ? &notes[i] : NULL;
	}
	map_init(&inbox->map, capacity, next);
	return 0;
}

void inbox_close(struct inbox *inbox)
{
	memory_release(&inbox->memory);
}

/*
 * Returns roughly how many slots wait in the inbox. A tail moves only once per cache line of cells,
 * so the last few slots of each lane are not counted.
 */
static uint64_t inbox_count(const struct inbox *inbox)
{
	uint64_t total = 0;

	/*
	 * Relaxed is enough: if the count is wrong, the owner is woken a little too early or too
	 * late.
	 */
	for (uint32_t i = 0; i <= inbox->lane_mask; i++) {
		const struct inbox_lane *lane = &inbox->lanes[i];
		uint64_t head = u64_load_relaxed(&lane->head);
		uint64_t tail = u64_load_relaxed(&lane->tail);

		total += tail > head ? tail - head : 0;
		total += u64_load_relaxed(&lane->spilled) - u64_load_relaxed(&lane->drained);
	}
	return total;
}

/*
 * Returns true if so many slots wait in the inbox that the owner should be woken to take them.
 * Counting them is slow, so this is done only if `pushes`, the number of this push, is a multiple
 * of INBOX_ASK. Otherwise it returns false.
 */
static bool inbox_holds_many(const struct inbox *inbox, uint64_t pushes)
{
	return pushes % INBOX_ASK == 0 && inbox_count(inbox) + INBOX_LINE >= INBOX_MANY;
}

bool inbox_push_again(struct inbox *inbox, unsigned cpu, uint32_t slot)
{
	struct inbox_lane *lane = &inbox->lanes[cpu & inbox->lane_mask];
	uint64_t spilled;

	if (!map_set(&inbox->map, slot))
		return false;
	spilled = u64_fetch_add_relaxed(&lane->spilled, 1) + 1; /* relaxed: see inbox_count() */
	if (lane->notes)
		u64_store_relaxed(&lane->notes->spilled, spilled);
	return inbox_holds_many(inbox, spilled);
}

bool inbox_push(struct inbox *inbox, unsigned cpu, uint32_t slot)
{
	struct inbox_lane *lane = &inbox->lanes[cpu & inbox->lane_mask];
	uint64_t place;

	if (!lane_push(lane, slot, &place))
		return inbox_push_again(inbox, cpu, slot);
	if (lane->notes) /* relaxed: only shown */
		u64_store_relaxed(&lane->notes->tail, place + 1);
	return inbox_holds_many(inbox, place + 1);
}

void inbox_begin(struct inbox *inbox)
{
	for (uint32_t i = 0; i <= inbox->lane_mask; i++)
		lane_begin(&inbox->lanes[i]);
	map_begin(&inbox->map);
}

unsigned inbox_take(struct inbox *inbox, uint32_t *slots, unsigned max)
{
	unsigned count = 0;

	for (uint32_t i = 0; i <= inbox->lane_mask && count < max; i++)
		count += lane_take(&inbox->lanes[i], slots + count, max - count);
	return count + map_take(&inbox->map, slots + count, max - count);
}

bool inbox_empty(const struct inbox *inbox)
{
	for (uint32_t i = 0; i <= inbox->lane_mask; i++)
		if (!lane_empty(&inbox->lanes[i]))
			return false;
	return map_empty(&inbox->map);
}
