/* SPDX-License-Identifier: MIT */
/*
 * See inbox.h. Any thread pushes, the owner takes.
 *
 * A cell is {lap, filled, slot}: empty cells of lap L are filled in order, and filling one claims
 * and publishes it in the same compare-and-swap. So there are no holes: a thread stopped anywhere
 * hides no other entry. The tail counts whole cache lines of cells. A producer starts at the tail's
 * line and fills the first empty cell. A producer that finds the line full moves the tail on, and
 * goes on at today's tail: while the producer was held up, others may have filled many lines. The
 * owner empties a cell into the next lap.
 *
 * The tail says where a look ends, so a wake-up hangs on it as it does on the cells:
 *
 *   producer                             owner
 *   move the tail, or find it moved      make a promise, begin a pass
 *   fill the cell                        load the tail: the look's end
 *   load the promise, the pass           load the cells before that end
 *
 * All of these are seq_cst, which makes one outcome impossible: the producer reads an older promise
 * or pass and does not wake, and the look of the pass ends before the cell, or finds it empty. So
 * too for a producer that finds a cell filled and fills the next: the load of the filled cell is
 * seq_cst too, so the look that reaches the second cell finds the first one filled.
 *
 * Order between entries does not matter (an entry only says "look at slot i"), so there are lanes.
 * Model: tests/models/inbox.pml.
 *
 * Labels: [entry] inbox_push → inbox_take: carries what was written to the slot's pair before.
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
/* No more lanes than leave each this many cells. */
#ifndef INBOX_LANE_CELLS_MIN
#define INBOX_LANE_CELLS_MIN 256
#endif
/*
 * The owner is to look when so many wait, though nothing is due. What waits when something falls
 * due is filed before that is told: 8,192 take some 0.3 ms. A wake-up is 14 us: 2 ns a push.
 */
#ifndef INBOX_MANY
#define INBOX_MANY 8192
#endif
/* After so many pushes into a lane, at least, it is asked whether there are many. */
#define INBOX_ASK_MIN 512
/* The kernel gives memory by so much. Where it gives more, some touches are to no purpose. */
#define INBOX_TOUCH_BYTES 4096
/* Threads that can be stopped between claiming a push and pushing: see timer.c. */
#ifndef INBOX_SPARE_CELLS
#define INBOX_SPARE_CELLS 1024
#endif

int inbox_open(struct inbox *inbox, uint32_t capacity)
{
	uint64_t lanes = u64_min(bits_power_of_two(cpu_count()), INBOX_LANES_MAX);
	uint64_t cells;
	char *base;
	int result;

	while (lanes > 1 && capacity / lanes < INBOX_LANE_CELLS_MIN)
		lanes /= 2;
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
	for (uint64_t i = 0; i < lanes; i++)
		inbox->lanes[i].cells =
			(atomic_u64 *)(void *)(base + lanes * sizeof(struct inbox_lane)) +
			i * cells;
	return 0;
}

void inbox_close(struct inbox *inbox)
{
	memory_release(&inbox->memory);
}

void inbox_observe(struct inbox *inbox, struct board_lane *notes)
{
	for (uint32_t i = 0; i <= inbox->lane_mask; i++)
		inbox->lanes[i].notes = &notes[i];
}

static atomic_u64 *lane_cell(const struct inbox *inbox, const struct inbox_lane *lane,
                             uint64_t place)
{
	return &lane->cells[place & (((uint64_t)1 << inbox->lane_shift) - 1)];
}

/* What an empty cell holds that is to be filled at this place. */
static uint64_t cell_empty_at(const struct inbox *inbox, uint64_t place)
{
	return place >> inbox->lane_shift << INBOX_LAP_SHIFT;
}

/*
 * Does the cell, found where this empty one should be, still hold an entry of an earlier lap? The
 * difference is signed, since laps come round.
 */
static bool cell_is_behind(uint64_t seen, uint64_t empty)
{
	return (int64_t)(seen - empty) < 0;
}

/*
 * Everything before `place` is filled: let the next producer start there. Returns the tail of now,
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
 * Fetch a cell that is soon to be filled: the owner wrote it last, and it is far away. Memory never
 * used is written to, not read: after a read the kernel has to take the page of zeros that it
 * showed away again, from every CPU.
 */
static void lane_expect(const struct inbox *inbox, const struct inbox_lane *lane, uint64_t place)
{
	atomic_u64 *cell = lane_cell(inbox, lane, place);

	if ((uintptr_t)cell % INBOX_TOUCH_BYTES == 0 && cell_empty_at(inbox, place) == 0)
		(void)u64_fetch_add_relaxed(cell, 0); /* whatever it holds by now, it stays */
	else
		__builtin_prefetch(cell, 1);
}

/* True if the slot was put at a place, which is told; false if the lane is full. */
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
		/* [entry] seq_cst: before the promise is read. */
		if (seen == empty && u64_cas_seq_cst(cell, &seen, empty | INBOX_FILLED | slot)) {
			if (lane->notes) /* relaxed: a number to read */
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

/* Entries in the lane without those of the tail's line; a hint. */
static uint64_t lane_count(const struct inbox_lane *lane)
{
	/* Relaxed: a head too old, or a tail, makes us ask in vain, or a little later. */
	uint64_t head = u64_load_relaxed(&lane->head);
	uint64_t tail = u64_load_relaxed(&lane->tail);

	return tail > head ? tail - head : 0;
}

/*
 * After a push at this place: should the owner be told of how much there is? Asked at some places
 * only: so rarely that a look at every lane does not count, so often that no lane can hide many.
 */
static bool inbox_holds_many(const struct inbox *inbox, const struct inbox_lane *lane,
                             uint64_t place)
{
	uint64_t half = (uint64_t)1 << (inbox->lane_shift - 1);
	uint64_t total = 0;

	if (((place + 1) & inbox->ask_mask) != 0)
		return false;
	/* Relaxed: see lane_count(). Signed: the owner may have taken this entry, and more. */
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

	/* There is a cell for every slot, so a full lane means that another has room. */
	while (!lane_push(inbox, lane, slot, &place))
		lane = &inbox->lanes[++cpu & inbox->lane_mask];
	return inbox_holds_many(inbox, lane, place);
}

void inbox_begin(struct inbox *inbox)
{
	/*
	 * A look has an end, or quick producers would keep the owner from expiring. What was pushed
	 * before this lies before the tail's line and the one after it. seq_cst: after the
	 * promise was made, like the cells.
	 */
	for (uint32_t i = 0; i <= inbox->lane_mask; i++)
		inbox->lanes[i].end = u64_load_seq_cst(&inbox->lanes[i].tail) + 2 * INBOX_LINE;
}

static unsigned lane_take(const struct inbox *inbox, struct inbox_lane *lane, uint32_t *slots,
                          unsigned max)
{
	uint64_t head = u64_load_relaxed(&lane->head); /* we are its only writer */
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
