/* SPDX-License-Identifier: MIT */
/*
 * See inbox.h. Any thread pushes, the owner takes.
 *
 * A cell is {lap, filled, slot}. Producers fill the empty cells of lap L in order. One
 * compare-and-swap both claims and publishes a cell, so there are no holes: a thread that is
 * stopped anywhere hides no other entry. The tail moves by whole cache lines of cells. A producer
 * starts at the tail and fills the first empty cell. If the line is full, the producer advances the
 * tail, and continues at the present tail: while it was stopped, other producers may have filled
 * many lines. The owner empties a cell into the next lap.
 *
 * The tail decides where a drain ends, so a wake-up depends on it as well as on the cells:
 *
 *   producer                             owner
 *   advance the tail, or find it moved   make a promise, begin a pass
 *   fill the cell                        load the tail: the drain's end
 *   load the promise, the pass           load the cells before that end
 *
 * All of these are seq_cst, which makes one outcome impossible: the producer reads an older promise
 * or pass and does not wake the owner, and the drain of the pass ends before the cell, or finds it
 * empty. A producer that finds a cell filled and fills the next cell is safe too. Its load of the
 * filled cell is seq_cst, so a drain that reaches the second cell finds the first cell filled.
 *
 * The order of entries does not matter, because an entry only names a slot to process. So the inbox
 * is split into lanes. Model: tests/models/inbox.pml.
 *
 * Labels: [entry] inbox_push → inbox_take: carries all earlier writes to the slot's pair.
 *
 * An emptied cell carries nothing: a producer that finds the cell empty uses its value only.
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
/* A lane has at least this many cells; fewer slots make fewer lanes. */
#ifndef INBOX_LANE_CELLS_MIN
#define INBOX_LANE_CELLS_MIN 256
#endif
/*
 * If this many entries wait, the owner must drain the inbox, even if nothing is due. The owner
 * schedules all waiting entries before it delivers a due timer; 8,192 delay it by some 0.3 ms. A
 * wake-up costs 14 us, which is 2 ns a push.
 */
#ifndef INBOX_MANY
#define INBOX_MANY 8192
#endif
/* Entries are counted after at least this many pushes into a lane, or fewer in a small lane. */
#define INBOX_ASK_MIN 512
/* The page size. If the pages are larger, some of the touches are useless. */
#define INBOX_TOUCH_BYTES 4096
/* The most threads that may be stopped between claiming a push and pushing: see timer.c. */
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

/*
 * Returns the value of an empty cell that will be filled at this position. `place` is the position
 * of a cell in its lane, counted over all laps.
 */
static uint64_t cell_empty_at(const struct inbox *inbox, uint64_t place)
{
	return place >> inbox->lane_shift << INBOX_LAP_SHIFT;
}

/*
 * Returns whether the cell still holds an entry of an earlier lap. `empty` is the cell's value if
 * it is empty in the present lap. The difference is signed, since laps wrap around.
 */
static bool cell_is_behind(uint64_t seen, uint64_t empty)
{
	return (int64_t)(seen - empty) < 0;
}

/*
 * All cells before `place` are filled: let the next producer start there. Returns the present tail:
 * `place` or a later line.
 */
static uint64_t lane_advance_tail(struct inbox_lane *lane, uint64_t place)
{
	uint64_t tail = u64_load_seq_cst(&lane->tail);

	while (tail < place)
		if (u64_cas_seq_cst(&lane->tail, &tail, place))
			return place;
	return tail;
}

/*
 * Fetch a cell that will soon be filled; the owner wrote it last, so it is in another CPU's cache.
 * Memory that was never used is written, not read: after a read, the kernel would have to unmap its
 * page of zeros from every CPU.
 */
static void lane_expect(const struct inbox *inbox, const struct inbox_lane *lane, uint64_t place)
{
	atomic_u64 *cell = lane_cell(inbox, lane, place);

	if ((uintptr_t)cell % INBOX_TOUCH_BYTES == 0 && cell_empty_at(inbox, place) == 0)
		(void)u64_fetch_add_relaxed(cell, 0); /* keeps any value that the cell has by now */
	else
		__builtin_prefetch(cell, 1);
}

/* Fill a cell with the slot, at position `*ret_place`. Returns false if the lane is full. */
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
		/* [entry] seq_cst: before the load of the promise. */
		if (seen == empty && u64_cas_seq_cst(cell, &seen, empty | INBOX_FILLED | slot)) {
			if (lane->notes) /* relaxed: a number for readers */
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

/* Returns how many entries the lane has, without those of the tail's line. A hint. */
static uint64_t lane_count(const struct inbox_lane *lane)
{
	/* Relaxed: with an old head or tail, the caller wakes the owner in vain, or a bit later. */
	uint64_t head = u64_load_relaxed(&lane->head);
	uint64_t tail = u64_load_relaxed(&lane->tail);

	return tail > head ? tail - head : 0;
}

/*
 * Returns whether the owner must drain the inbox after a push at this position, because many
 * entries wait. The entries are counted at some positions only. These are so rare that reading all
 * lanes costs little, and so frequent that no lane can hide many entries.
 */
static bool inbox_holds_many(const struct inbox *inbox, const struct inbox_lane *lane,
                             uint64_t place)
{
	uint64_t half = (uint64_t)1 << (inbox->lane_shift - 1);
	uint64_t total = 0;

	if (((place + 1) & inbox->ask_mask) != 0)
		return false;
	/* Relaxed: see lane_count(). Signed: the owner may have taken this entry and later ones. */
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

	/* There is a cell for every slot, so if a lane is full, another lane has an empty cell. */
	while (!lane_push(inbox, lane, slot, &place))
		lane = &inbox->lanes[++cpu & inbox->lane_mask];
	return inbox_holds_many(inbox, lane, place);
}

void inbox_begin(struct inbox *inbox)
{
	/*
	 * A drain has an end. Without it, fast producers would keep the owner from expiring timers.
	 * An entry that was pushed before this call is in the line after the tail's or before it.
	 * seq_cst: after the promise was made, like the loads of the cells.
	 */
	for (uint32_t i = 0; i <= inbox->lane_mask; i++)
		inbox->lanes[i].end = u64_load_seq_cst(&inbox->lanes[i].tail) + 2 * INBOX_LINE;
}

static unsigned lane_take(const struct inbox *inbox, struct inbox_lane *lane, uint32_t *slots,
                          unsigned max)
{
	uint64_t head = u64_load_relaxed(&lane->head); /* the owner is its only writer */
	unsigned count = 0;

	for (; count < max && head < lane->end; head++) {
		atomic_u64 *cell = lane_cell(inbox, lane, head);
		uint64_t seen = u64_load_seq_cst(cell); /* [entry] after the promise was made */

		if ((seen & INBOX_FILLED) == 0)
			break;
		slots[count++] = (uint32_t)(seen & (INBOX_FILLED - 1));
		/* Relaxed: an emptied cell carries nothing. */
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
