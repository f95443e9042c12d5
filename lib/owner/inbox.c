/* SPDX-License-Identifier: MIT */
/*
 * A cell holds {lap, filled, slot}; a lap is one round through a lane's cells. One CAS claims and
 * publishes a cell, and cells are filled in order, so a stopped producer leaves no hole. The tail
 * moves by cache lines; after each, a producer goes on at the present tail, as others may have
 * filled many.
 *
 * A producer sets a slot's bits in the map bottom up, whatever it finds, and the owner takes words
 * top down: a producer stopped in between hides no other's slot, as that one sets all three bits
 * too. A bit found set need not be set: the owner takes this word later, and then those below.
 *
 *   producer                                      owner
 *   advance the tail, or find it moved            make a promise, begin a pass
 *   fill the cell; or set bits, or find them set  load the tails: the ends of the drain
 *   load the promise, the pass                    load cells before the ends; take words
 *
 * All seq_cst, so no wake-up is lost: if a producer, even one that only found a cell filled or bits
 * set, loads promise or pass before the owner stores a new one, the drain finds the slot.
 *
 * The owner changes the pair of each slot that it takes, if only to the same value. So who finds
 * the bit still set may rely on it: he had changed the pair before the owner did; had the owner
 * been first, he would have read the owner's change, and found the bit taken.
 */
#include "owner/inbox.h"

#include "base/cpu.h"
#include "base/test_point.h"

#define INBOX_SLOT_BITS 26
#define INBOX_FILLED ((uint64_t)1 << INBOX_SLOT_BITS)
#define INBOX_LAP ((uint64_t)2 << INBOX_SLOT_BITS)
#define INBOX_LANES_MAX BOARD_LANES_MAX
#ifndef INBOX_LINE
#define INBOX_LINE (CACHE_LINE_BYTES / sizeof(atomic_u64))
#endif
/* fits the first-level cache, and holds what comes while the owner is busy */
#ifndef INBOX_LANE_CELLS
#define INBOX_LANE_CELLS 2048
#endif
/* at least so many slots a lane */
#ifndef INBOX_LANE_SLOTS_MIN
#define INBOX_LANE_SLOTS_MIN 256
#endif
/*
 * so many waiting slots wake the owner though nothing is due: it schedules before it delivers, and
 * 8,192 delay a timer by 0.3 ms; the wake costs 14 us, 2 ns a push
 */
#ifndef INBOX_MANY
#define INBOX_MANY 8192
#endif
/* pushes of a lane between two counts, which read all lanes */
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

/* `place` counts over all laps. */
static uint64_t cell_empty_at(uint64_t place)
{
	return place / INBOX_LANE_CELLS * INBOX_LAP;
}

/* To at least `place`: all earlier cells are filled. Returns the tail. */
static uint64_t lane_advance_tail(struct inbox_lane *lane, uint64_t place)
{
	uint64_t tail = u64_load_seq_cst(&lane->tail);

	while (tail < place)
		if (u64_cas_seq_cst(&lane->tail, &tail, place))
			return place;
	return tail;
}

/* False: full. */
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
		/* still filled since an earlier lap? Signed, because laps wrap. */
		if ((int64_t)(seen - empty) < 0)
			return false;
		if (++place % INBOX_LINE == 0) {
			place = lane_advance_tail(lane, place);
			/* the owner has written it: it is in another CPU's cache */
			__builtin_prefetch(lane_cell(lane, place + 2 * INBOX_LINE), 1);
		}
	}
}

/* Before the drain's end. */
static unsigned lane_take(struct inbox_lane *lane, uint32_t *slots, unsigned max)
{
	uint64_t head = u64_load_relaxed(&lane->head); /* relaxed: the owner's */
	unsigned count = 0;

	for (; count < max && head < lane->end; head++) {
		atomic_u64 *cell = lane_cell(lane, head);
		uint64_t seen = u64_load_seq_cst(cell);

		if ((seen & INBOX_FILLED) == 0)
			break;
		slots[count++] = (uint32_t)(seen & (INBOX_FILLED - 1));
		/* Relaxed: who still finds the old value takes the lane for full. */
		u64_store_relaxed(cell, cell_empty_at(head) + INBOX_LAP);
	}
	if (count > 0)
		u64_store_relaxed(&lane->head, head);
	if (count > 0 && lane->notes)
		u64_store_relaxed(&lane->notes->head, head);
	return count;
}

/* ---- the spill map ---- */

/* False: it waited in the map already. */
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

/* What the level's lowest bit to do stands for. */
static uint32_t map_pop(struct inbox *inbox, unsigned level)
{
	uint32_t index = inbox->word[level] * INBOX_WORD + bits_lowest(inbox->bits[level]);

	inbox->bits[level] &= inbox->bits[level] - 1;
	return index;
}

/*
 * Takes words, top down, until the level has bits to do; false at the map's end. Each word at most
 * once a drain, however fast producers are.
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

/* About how many slots wait, without those in the tails' cache lines. */
static uint64_t inbox_count(const struct inbox *inbox)
{
	uint64_t total = 0;

	/* Relaxed: a stale number wakes the owner in vain or a little later. */
	for (uint32_t i = 0; i <= inbox->lane_mask; i++) {
		const struct inbox_lane *lane = &inbox->lanes[i];
		uint64_t head = u64_load_relaxed(&lane->head);
		uint64_t tail = u64_load_relaxed(&lane->tail);

		total += tail > head ? tail - head : 0;
		total += u64_load_relaxed(&lane->spilled) - u64_load_relaxed(&lane->drained);
	}
	return total;
}

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
	 * Without ends, fast producers would keep the owner from expiring. A cell filled before is
	 * less than a cache line after the tail.
	 */
	for (uint32_t i = 0; i <= inbox->lane_mask; i++) {
		struct inbox_lane *lane = &inbox->lanes[i];
		uint64_t spilled = u64_load_relaxed(&lane->spilled);

		lane->end = u64_load_seq_cst(&lane->tail) + INBOX_LINE;
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
	/* the top level is enough: who has not set it yet will load the promise, and wake */
	for (uint32_t i = 0; i < inbox->top_words; i++)
		if (u64_load_seq_cst(&inbox->map[INBOX_LEVELS - 1][i]) != 0)
			return false;
	return true;
}
