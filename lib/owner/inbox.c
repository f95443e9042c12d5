/* SPDX-License-Identifier: MIT */
/*
 * Implements the inbox of inbox.h. Any thread pushes slots, and the owner takes them.
 *
 * A cell holds {lap, filled, slot}. A lap is one round through the cells of a lane. Producers fill
 * the empty cells of a lap in order. One compare-and-swap both claims and publishes a cell, so a
 * lane has no empty cell before a filled cell. The tail of a lane moves by whole cache lines of
 * cells. A producer starts at the tail and fills the first empty cell. If the cache line is full,
 * the producer advances the tail. The producer then continues at the present tail, because other
 * producers may have filled many lines in between. When the owner takes an entry, it marks the cell
 * as an empty cell of the next lap.
 *
 * The owner computes the end of its drain from the tail. Producer and owner make these accesses:
 *
 *   producer                             owner
 *   advance the tail, or find it moved   make a promise, begin a pass
 *   fill the cell                        load the tail: the drain's end
 *   load the promise, the pass           load the cells before that end
 *
 * All accesses in the table are seq_cst, so no wake-up is lost. If the producer loads the promise
 * or the pass before the owner stores a new value, the drain finds the producer's entry. A producer
 * may find one cell filled, and fill the next cell. The producer's load of the filled cell is
 * seq_cst, so the drain finds both of these cells filled.
 *
 * An entry only tells the owner to process a slot. The owner may process entries in any order, so
 * the entries of the inbox are divided among lanes.
 *
 * Labels: [entry] inbox_push → inbox_take: carries all earlier writes to the slot's pair.
 */
#include "owner/inbox.h"

#include "base/cpu.h"
#include "base/test_point.h"

#define INBOX_SLOT_BITS 26
#define INBOX_FILLED ((uint64_t)1 << INBOX_SLOT_BITS)
#define INBOX_LAP_SHIFT (INBOX_SLOT_BITS + 1)
#ifndef INBOX_LINE
#define INBOX_LINE (CACHE_LINE_BYTES / sizeof(atomic_u64))
#endif
#define INBOX_LANES_MAX BOARD_LANES_MAX
/* The least number of cells in a lane. A hub with few slots has fewer lanes. */
#ifndef INBOX_LANE_CELLS_MIN
#define INBOX_LANE_CELLS_MIN 256
#endif
/*
 * If INBOX_MANY entries wait, the owner must drain the inbox, even if no timer is due. The owner
 * schedules all waiting entries before it delivers a due timer. 8,192 waiting entries delay a timer
 * by about 0.3 ms. A wake-up costs 14 us, which is 2 ns for each of 8,192 pushes.
 */
#ifndef INBOX_MANY
#define INBOX_MANY 8192
#endif
/*
 * Producers count the inbox's entries after every N-th push into a lane. N is at least
 * INBOX_ASK_MIN. In a lane with few cells, N is half the number of the lane's cells.
 */
#define INBOX_ASK_MIN 512
/* The page size: lane_expect() touches one cell in each page of the inbox. */
#define INBOX_TOUCH_BYTES 4096
/* Spare cells for threads that have claimed a push and stopped before it (see pair_armed()). */
#ifndef INBOX_SPARE_CELLS
#define INBOX_SPARE_CELLS 1024
#endif

int inbox_open(struct inbox *inbox, uint32_t capacity, struct board_lane *notes)
{
	uint64_t lanes = cpu_parts(capacity, INBOX_LANES_MAX, INBOX_LANE_CELLS_MIN);
	uint64_t cells;
	char *base;
	int result;

	cells = bits_power_of_two((capacity + INBOX_SPARE_CELLS + lanes - 1) / lanes);
	result = memory_reserve(&inbox->memory, lanes * sizeof(struct inbox_lane) +
	                                                lanes * cells * sizeof(atomic_u64));
	if (result < 0)
		return result;
	base = inbox->memory.base;
	inbox->lanes = (struct inbox_lane *)(void *)base;
	inbox->lane_mask = (uint32_t)lanes - 1;
	inbox->lane_shift = bits_highest(cells);
	inbox->ask_mask = u64_min(cells / 2, u64_max(INBOX_MANY / 4 / lanes, INBOX_ASK_MIN)) - 1;
	for (uint64_t i = 0; i < lanes; i++) {
		inbox->lanes[i].cells =
			(atomic_u64 *)(void *)(base + lanes * sizeof(struct inbox_lane)) +
			i * cells;
		inbox->lanes[i].notes = notes ? &notes[i] : NULL;
	}
	return 0;
}

void inbox_close(struct inbox *inbox)
{
	memory_release(&inbox->memory);
}

static atomic_u64 *lane_cell(const struct inbox *inbox, const struct inbox_lane *lane,
                             uint64_t place)
{
	return &lane->cells[place & (((uint64_t)1 << inbox->lane_shift) - 1)];
}

/* Returns the value of the empty cell at `place`. A lane counts its positions over all laps. */
static uint64_t cell_empty_at(const struct inbox *inbox, uint64_t place)
{
	return place >> inbox->lane_shift << INBOX_LAP_SHIFT;
}

/*
 * Returns whether a cell with the value `seen` still holds an entry of an earlier lap. `empty` is
 * the value of an empty cell of the present lap. The difference is signed, because laps wrap.
 */
static bool cell_is_behind(uint64_t seen, uint64_t empty)
{
	return (int64_t)(seen - empty) < 0;
}

/* Advance the tail to at least `place`, because all earlier cells are filled. Returns the tail. */
static uint64_t lane_advance_tail(struct inbox_lane *lane, uint64_t place)
{
	uint64_t tail = u64_load_seq_cst(&lane->tail);

	while (tail < place)
		if (u64_cas_seq_cst(&lane->tail, &tail, place))
			return place;
	return tail;
}

/*
 * Prefetch a cell that a producer will soon fill. The owner has written the cell, so the cell is
 * usually in the cache of the owner's CPU. If the cell begins a page that was never used, write the
 * cell instead of reading it. A read would map the kernel's page of zeros. The kernel would later
 * have to unmap this page from every CPU.
 */
static void lane_expect(const struct inbox *inbox, const struct inbox_lane *lane, uint64_t place)
{
	atomic_u64 *cell = lane_cell(inbox, lane, place);

	if ((uintptr_t)cell % INBOX_TOUCH_BYTES == 0 && cell_empty_at(inbox, place) == 0)
		(void)u64_fetch_add_relaxed(cell, 0); /* adding 0 keeps the cell's value */
	else
		__builtin_prefetch(cell, 1);
}

/* Put the slot into a cell, whose position is `*ret_place`. Returns false if the lane is full. */
static bool lane_push(struct inbox *inbox, struct inbox_lane *lane, uint32_t slot,
                      uint64_t *ret_place)
{
	uint64_t place = u64_load_seq_cst(&lane->tail);

	for (;;) {
		atomic_u64 *cell = lane_cell(inbox, lane, place);
		uint64_t empty = cell_empty_at(inbox, place);
		uint64_t seen;

		test_point(TEST_POINT_PUSH_AT_CELL);
		seen = u64_load_seq_cst(cell);
		/* [entry] seq_cst: the cell is filled before the promise is loaded. */
		if (seen == empty && u64_cas_seq_cst(cell, &seen, empty | INBOX_FILLED | slot)) {
			if (lane->notes) /* relaxed: only a number for the board's readers */
				u64_store_relaxed(&lane->notes->tail, place + 1);
			*ret_place = place;
			return true;
		}
		if (cell_is_behind(seen, empty))
			return false;
		if (++place % INBOX_LINE == 0) {
			place = lane_advance_tail(lane, place);
			lane_expect(inbox, lane, place + 2 * INBOX_LINE);
		}
	}
}

/* Returns an estimate of the lane's entries, without the entries in the tail's cache line. */
static uint64_t lane_count(const struct inbox_lane *lane)
{
	/* Relaxed: if head or tail is stale, a caller wakes the owner in vain or a little later. */
	uint64_t head = u64_load_relaxed(&lane->head);
	uint64_t tail = u64_load_relaxed(&lane->tail);

	return tail > head ? tail - head : 0;
}

/*
 * Returns true if about INBOX_MANY entries wait or the lane is half full. To count the entries, a
 * producer must read all lanes, so it counts only after every (ask_mask + 1)-th push into a lane.
 */
static bool inbox_holds_many(const struct inbox *inbox, const struct inbox_lane *lane,
                             uint64_t place)
{
	uint64_t half = (uint64_t)1 << (inbox->lane_shift - 1);
	uint64_t total = 0;

	if (((place + 1) & inbox->ask_mask) != 0)
		return false;
	/* Relaxed as in lane_count(). The difference is signed: the head may be past `place`. */
	if ((int64_t)(place + 1 - u64_load_relaxed(&lane->head)) >= (int64_t)half)
		return true;
	for (uint32_t i = 0; i <= inbox->lane_mask; i++)
		total += lane_count(&inbox->lanes[i]);
	return total + INBOX_LINE >= INBOX_MANY;
}

bool inbox_push(struct inbox *inbox, unsigned cpu, uint32_t slot)
{
	struct inbox_lane *lane = &inbox->lanes[cpu & inbox->lane_mask];
	uint64_t place;

	/* There are more cells than slots, so if a lane is full, another lane has an empty cell. */
	while (!lane_push(inbox, lane, slot, &place))
		lane = &inbox->lanes[++cpu & inbox->lane_mask];
	return inbox_holds_many(inbox, lane, place);
}

void inbox_begin(struct inbox *inbox)
{
	/*
	 * Without an end of the drain, fast producers would keep the owner from expiring timers. An
	 * entry that was pushed before inbox_begin() is at most one cache line after the tail's
	 * line. The load of the tail is seq_cst, after the store of the promise.
	 */
	for (uint32_t i = 0; i <= inbox->lane_mask; i++)
		inbox->lanes[i].end = u64_load_seq_cst(&inbox->lanes[i].tail) + 2 * INBOX_LINE;
}

static unsigned lane_take(const struct inbox *inbox, struct inbox_lane *lane, uint32_t *slots,
                          unsigned max)
{
	uint64_t head = u64_load_relaxed(&lane->head); /* only the owner writes the head */
	unsigned count = 0;

	for (; count < max && head < lane->end; head++) {
		atomic_u64 *cell = lane_cell(inbox, lane, head);
		uint64_t seen = u64_load_seq_cst(cell); /* [entry] after the store of the promise */

		if ((seen & INBOX_FILLED) == 0)
			break;
		slots[count++] = (uint32_t)(seen & (INBOX_FILLED - 1));
		/* Relaxed: the store that empties a cell orders no other memory. */
		u64_store_relaxed(cell,
		                  cell_empty_at(inbox, head) + ((uint64_t)1 << INBOX_LAP_SHIFT));
	}
	if (count > 0)
		u64_store_relaxed(&lane->head, head);
	if (count > 0 && lane->notes)
		u64_store_relaxed(&lane->notes->head, head);
	return count;
}

unsigned inbox_take(struct inbox *inbox, uint32_t *slots, unsigned max)
{
	unsigned count = 0;

	for (uint32_t i = 0; i <= inbox->lane_mask && count < max; i++)
		count += lane_take(inbox, &inbox->lanes[i], slots + count, max - count);
	return count;
}

bool inbox_empty(const struct inbox *inbox)
{
	for (uint32_t i = 0; i <= inbox->lane_mask; i++) {
		const struct inbox_lane *lane = &inbox->lanes[i];
		const atomic_u64 *cell = lane_cell(inbox, lane, u64_load_relaxed(&lane->head));

		if ((u64_load_seq_cst(cell) & INBOX_FILLED) != 0)
			return false;
	}
	return true;
}
