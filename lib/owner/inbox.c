/* SPDX-License-Identifier: MIT */
/*
 * Lanes. A cell of a lane holds a slot, a flag that says it is filled, and the lap, which counts
 * the rounds through the ring. A producer claims and fills a cell by one compare-and-swap, and the
 * cells are filled in order. So a producer that is stopped never leaves a cell that is claimed but
 * empty, behind which the owner could not see. The tail is moved once per cache line only; at that
 * point a producer goes on from where the tail is by now, because others may have filled many
 * cells.
 *
 * The map. A producer sets the bits of its slot from the bottom level to the top, even if some are
 * set, and the owner takes words from the top down. So a producer that is stopped half-way hides
 * nobody's slot: whoever pushes another slot in the same words sets all three bits too. A bit that
 * is already set need not be set again, because the owner has yet to take its word, and then takes
 * those below.
 *
 *   producer                                      owner
 *   advance the tail, or find it moved            make a promise, begin a pass
 *   fill the cell; or set bits, or find them set  load the tails: the ends of the drain
 *   load the promise, the pass                    load cells before the ends; take words
 *
 * All of these are seq_cst, so no wake-up is lost: if a producer loads the promise or the pass
 * before the owner stores a new one, the drain that follows finds the slot. That is also true of a
 * producer that has only found a cell filled, or bits set, by others.
 *
 * The owner stores the pair of each slot that it takes, even if nothing in it changes. That is why
 * a producer that finds its slot's bits still set may rely on them. It has changed the pair before
 * it looked at the bits. Had the owner stored the pair first, the producer would have read that
 * store, and would then have seen that the bits were taken.
 */
#include "owner/inbox.h"

#include "base/cpu.h"
#include "base/invariant.h"
#include "base/test_point.h"
#include "timer/pair.h"

#define INBOX_FILLED ((uint64_t)1 << TIMER_SLOT_BITS)
#define INBOX_LAP ((uint64_t)2 << TIMER_SLOT_BITS)
#define INBOX_LANES_MAX BOARD_LANES_MAX
#ifndef INBOX_LINE
#define INBOX_LINE (CACHE_LINE_BYTES / sizeof(atomic_u64))
#endif
/* A lane fits into the first-level cache, and holds what comes while the owner is busy. */
#ifndef INBOX_LANE_CELLS
#define INBOX_LANE_CELLS 2048
#endif
_Static_assert(INBOX_LANE_CELLS % INBOX_LINE == 0, "a lap ends with a cache line");
/* A hub has a further lane only if each then stands for so many slots. */
#ifndef INBOX_LANE_SLOTS_MIN
#define INBOX_LANE_SLOTS_MIN 256
#endif
/*
 * When so many slots wait, the owner is woken although nothing is due. It schedules what waits
 * before it delivers what is due, and 8,192 slots make a timer late by 0.3 ms. The wake costs 14
 * us, which is 2 ns a push.
 */
#ifndef INBOX_MANY
#define INBOX_MANY 8192
#endif
/* How many pushes of a lane lie between two counts of what waits, since a count reads all lanes. */
#ifndef INBOX_ASK
#define INBOX_ASK 512
#endif

int inbox_open(struct inbox *inbox, uint32_t capacity, struct board_lane *notes)
{
	uint64_t lanes = cpu_parts(capacity, INBOX_LANES_MAX, INBOX_LANE_SLOTS_MIN);
	uint64_t words[INBOX_LEVELS], total = 0, below = capacity;
	atomic_u64 *next;
	int result;

	for (unsigned level = 0; level < INBOX_LEVELS; level++) {
		words[level] = below = (below + INBOX_WORD - 1) / INBOX_WORD;
		total += words[level];
	}
	result = memory_reserve(&inbox->memory, lanes * (sizeof(struct inbox_lane) +
	                                                 INBOX_LANE_CELLS * sizeof(atomic_u64)) +
	                                                total * sizeof(atomic_u64));
	if (result < 0)
		return result;
	inbox->lanes = inbox->memory.base;
	inbox->lane_mask = (uint32_t)lanes - 1;
	inbox->top_words = (uint32_t)words[INBOX_LEVELS - 1];
	next = (atomic_u64 *)(void *)(inbox->lanes + lanes);
	for (uint64_t i = 0; i < lanes; i++, next += INBOX_LANE_CELLS) {
		inbox->lanes[i].cells = next;
		inbox->lanes[i].notes = notes ? &notes[i] : NULL;
	}
	for (unsigned level = 0; level < INBOX_LEVELS; next += words[level++])
		inbox->map[level] = next;
	return 0;
}

void inbox_close(struct inbox *inbox)
{
	memory_release(&inbox->memory);
}

/* ---- a lane ---- */

static atomic_u64 *lane_cell(const struct inbox_lane *lane, uint64_t place)
{
	return &lane->cells[place % INBOX_LANE_CELLS];
}

/* Returns what the cell of this position holds while it is empty. Positions count over all laps. */
static uint64_t cell_empty_at(uint64_t place)
{
	return place / INBOX_LANE_CELLS * INBOX_LAP;
}

/*
 * Moves the tail to `place`, before which all cells are filled, unless somebody has moved it
 * further. Returns where it is then.
 */
static uint64_t lane_advance_tail(struct inbox_lane *lane, uint64_t place)
{
	uint64_t tail = u64_load_seq_cst(&lane->tail);

	while (tail < place)
		if (u64_cas_seq_cst(&lane->tail, &tail, place))
			return place;
	return tail;
}

/* Puts a slot into the lane, and stores its position. Returns false if the lane is full. */
static bool lane_push(struct inbox_lane *lane, uint32_t slot, uint64_t *ret_place)
{
	uint64_t place = u64_load_seq_cst(&lane->tail);

	for (;;) {
		atomic_u64 *cell = lane_cell(lane, place);
		uint64_t empty = cell_empty_at(place);
		uint64_t seen;

		test_point(TEST_POINT_PUSH_AT_CELL);
		seen = u64_load_seq_cst(cell);
		if (seen == empty && u64_cas_seq_cst(cell, &seen, empty | INBOX_FILLED | slot)) {
			*ret_place = place;
			return true;
		}
		/*
		 * If the cell still holds a slot of the previous lap, the lane is full. The
		 * difference is taken as a signed number, because laps wrap around.
		 */
		if ((int64_t)(seen - empty) < 0)
			return false;
		if (++place % INBOX_LINE == 0) {
			place = lane_advance_tail(lane, place);
			/* The owner wrote these cells last, so they are in another CPU's cache. */
			__builtin_prefetch(lane_cell(lane, place + 2 * INBOX_LINE), 1);
		}
	}
}

/* Takes up to `max` slots from before the drain's end. Returns how many. */
static unsigned lane_take(struct inbox_lane *lane, uint32_t *slots, unsigned max)
{
	uint64_t head = u64_load_relaxed(&lane->head); /* relaxed: the owner's own */
	unsigned count = 0;

	for (; count < max && head < lane->end; head++) {
		atomic_u64 *cell = lane_cell(lane, head);
		uint64_t seen = u64_load_seq_cst(cell);

		if ((seen & INBOX_FILLED) == 0)
			break;
		slots[count++] = (uint32_t)(seen & (INBOX_FILLED - 1));
		/*
		 * Relaxed: a producer that still sees the old value only takes the lane for full.
		 */
		u64_store_relaxed(cell, cell_empty_at(head) + INBOX_LAP);
	}
	if (count > 0)
		u64_store_relaxed(&lane->head, head);
	if (count > 0 && lane->notes)
		u64_store_relaxed(&lane->notes->head, head);
	return count;
}

/* ---- the spill map ---- */

/*
 * Sets the bits of a slot from the bottom level to the top. Returns false if the slot's own bit was
 * set already, in which case the owner is going to see it anyway.
 */
static bool map_set(const struct inbox *inbox, uint32_t slot)
{
	bool fresh = false;

	for (unsigned level = 0; level < INBOX_LEVELS; level++, slot /= INBOX_WORD) {
		atomic_u64 *word = &inbox->map[level][slot / INBOX_WORD];
		uint64_t bit = (uint64_t)1 << slot % INBOX_WORD;

		test_point(TEST_POINT_PUSH_AT_CELL);
		if ((u64_load_seq_cst(word) & bit) != 0)
			continue;
		(void)u64_fetch_or_seq_cst(word, bit);
		fresh |= level == 0;
	}
	return fresh;
}

/* Removes the lowest bit that is to do on a level. Returns the index of what it stands for. */
static uint32_t map_pop(struct inbox *inbox, unsigned level)
{
	uint32_t index = inbox->word[level] * INBOX_WORD + bits_lowest(inbox->bits[level]);

	inbox->bits[level] &= inbox->bits[level] - 1;
	return index;
}

/*
 * Takes words, on the levels above and on this one, until this level has bits to do. Returns false
 * at the end of the map. Each word is taken at most once in a drain, however fast producers are.
 */
static bool map_walk(struct inbox *inbox, unsigned level)
{
	while (inbox->bits[level] == 0) {
		atomic_u64 *word;

		if (level == INBOX_LEVELS - 1) {
			if (inbox->word[level] + 1 == inbox->top_words)
				return false;
			inbox->word[level]++;
		} else {
			if (!map_walk(inbox, level + 1))
				return false;
			inbox->word[level] = map_pop(inbox, level + 1);
		}
		word = &inbox->map[level][inbox->word[level]];
		if (u64_load_seq_cst(word) != 0)
			inbox->bits[level] = u64_exchange_seq_cst(word, 0);
	}
	return true;
}

/* ---- the inbox ---- */

/* Returns about how many slots wait. It leaves out those in the cache lines of the tails. */
static uint64_t inbox_count(const struct inbox *inbox)
{
	uint64_t total = 0;

	/* Relaxed: with an old number the owner is woken in vain, or a little later. */
	for (uint32_t i = 0; i <= inbox->lane_mask; i++) {
		const struct inbox_lane *lane = &inbox->lanes[i];
		uint64_t head = u64_load_relaxed(&lane->head);
		uint64_t tail = u64_load_relaxed(&lane->tail);

		total += tail > head ? tail - head : 0;
		total += u64_load_relaxed(&lane->spilled) - u64_load_relaxed(&lane->drained);
	}
	return total;
}

/* Tells, for one push in INBOX_ASK, whether so many slots wait that the owner should be woken. */
static bool inbox_holds_many(const struct inbox *inbox, uint64_t pushes)
{
	return pushes % INBOX_ASK == 0 && inbox_count(inbox) + INBOX_LINE >= INBOX_MANY;
}

bool inbox_push_again(struct inbox *inbox, unsigned cpu, uint32_t slot)
{
	struct inbox_lane *lane = &inbox->lanes[cpu & inbox->lane_mask];
	uint64_t spilled;

	if (!map_set(inbox, slot))
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
	/*
	 * The end of each lane is fixed now, because producers that are fast enough could otherwise
	 * keep the owner draining while timers become overdue. A cell that was filled before this
	 * call lies less than a cache line after the tail.
	 */
	for (uint32_t i = 0; i <= inbox->lane_mask; i++) {
		struct inbox_lane *lane = &inbox->lanes[i];
		uint64_t spilled = u64_load_relaxed(&lane->spilled);

		lane->end = u64_load_seq_cst(&lane->tail) + INBOX_LINE;
		invariant(u64_load_relaxed(&lane->head) <= lane->end);
		if (spilled == u64_load_relaxed(&lane->drained))
			continue;
		u64_store_relaxed(&lane->drained, spilled);
		if (lane->notes)
			u64_store_relaxed(&lane->notes->drained, spilled);
	}
	inbox->word[INBOX_LEVELS - 1] = UINT32_MAX; /* before word 0 */
}

unsigned inbox_take(struct inbox *inbox, uint32_t *slots, unsigned max)
{
	unsigned count = 0;

	for (uint32_t i = 0; i <= inbox->lane_mask && count < max; i++)
		count += lane_take(&inbox->lanes[i], slots + count, max - count);
	while (count < max && map_walk(inbox, 0))
		slots[count++] = map_pop(inbox, 0);
	return count;
}

bool inbox_empty(const struct inbox *inbox)
{
	for (uint32_t i = 0; i <= inbox->lane_mask; i++) {
		const struct inbox_lane *lane = &inbox->lanes[i];
		const atomic_u64 *cell = lane_cell(lane, u64_load_relaxed(&lane->head));

		if ((u64_load_seq_cst(cell) & INBOX_FILLED) != 0)
			return false;
	}
	/* The top level is enough: whoever has not set its bit there yet will load the promise. */
	for (uint32_t i = 0; i < inbox->top_words; i++)
		if (u64_load_seq_cst(&inbox->map[INBOX_LEVELS - 1][i]) != 0)
			return false;
	return true;
}
