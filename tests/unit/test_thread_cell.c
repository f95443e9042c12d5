/* SPDX-License-Identifier: MIT */
/*
 * Tests that a reader of a cell never gets a wrong name, wherever the cell's thread stores between
 * two loads of the reader. The thread's calls run first, and what the cell is after each store is
 * kept. The reader then reads a cell that goes through these states at random steps.
 */
#include "harness.h"

#include <string.h>

#include "board/thread_cell.h"
#include "queue/running_callbacks.h"

#define STATES_MAX 800
#define QUEUE 500

void (*step_hook)(void);

/* What a cell is after a store of its thread, and what the thread was doing. */
static struct state {
	struct board_cell cell;
	uint64_t fn, timer, queue; /* fn is 0 between callbacks */
} states[STATES_MAX];
static unsigned states_count;

static struct board_cell cell;
static struct state now; /* what the thread does; its cell is not used */
static struct dice dice;

static void keep_state(void)
{
	step_hook = NULL;
	expect_lt(states_count, STATES_MAX);
	states[states_count] = now;
	if (u64_load_relaxed(&cell.fn) == 0) /* the callback has not begun yet, or has ended */
		states[states_count].fn = 0;
	memcpy(&states[states_count++].cell, &cell, sizeof(cell));
	step_hook = keep_state;
}

static void call_callback(uint64_t fn, uint32_t count)
{
	uint64_t timer = 10 * fn + count % 3;

	now.fn = fn;
	now.timer = timer;
	cell_begin(&cell, fn, timer, count);
	cell_end(&cell, 1000 + states_count);
}

/* Makes the calls of the thread. Before each atomic step, step_hook keeps the cell's state. */
static void make_states(void)
{
	u32_store_release(&cell.clock, ~(uint32_t)7 << 3 | 6); /* of thread 7 */
	step_hook = keep_state;
	for (unsigned i = 0; i < 6; i++) {
		now.queue = QUEUE + i % 2;
		u64_store_release(&cell.queue, now.queue);
		cell_enter(&cell, cell_state(&cell), 1000 + states_count);
		for (uint32_t count = 1; count <= 6;
		     count++) /* the same functions again and again */
			call_callback(1 + (count + i) % 2, count);
		cell_leave(&cell);
	}
	keep_state();
	step_hook = NULL;
}

static unsigned first, at, last;

/* Lets the thread go on by some states, mostly by none, between two loads of the reader. */
static void go_on(void)
{
	if (at < last && dice_one_in(&dice, 3)) {
		at += 1 + (unsigned)dice_below(&dice, last - at);
		memcpy(&cell, &states[at].cell, sizeof(cell));
	}
}

/* Tells whether the thread called this callback at one of the states that the reader has seen. */
static bool was_so(const struct cell_reading *reading)
{
	for (unsigned i = first; i <= at; i++)
		if (states[i].fn == reading->fn && states[i].timer == reading->timer &&
		    states[i].queue == reading->queue)
			return true;
	return false;
}

TEST(a_reading_is_what_the_thread_did_meanwhile, 60)
{
	unsigned named = 0;

	make_states();
	dice = dice_new(0);
	for (unsigned i = scaled(300000); i > 0; i--) {
		struct cell_reading reading;

		first = (unsigned)dice_below(&dice, states_count);
		at = first;
		last = first + (unsigned)dice_below(&dice, 40);
		last = last < states_count ? last : states_count - 1;
		memcpy(&cell, &states[at].cell, sizeof(cell));
		step_hook = go_on;
		expect(cell_read(&cell, &reading));
		step_hook = NULL;
		expect_eq(reading.tid, 7);
		expect_context("states", first, at);
		if (reading.where != TIMERHUB_IN_CALLBACK)
			continue;
		named++;
		expect(was_so(&reading));
	}
	expect_lt(1000, named);
}

TEST(a_cell_that_is_quiet_is_read_as_it_is, 20)
{
	make_states();
	for (first = 0; first < states_count; first++) {
		struct cell_reading reading;

		memcpy(&cell, &states[first].cell, sizeof(cell));
		at = first;
		expect(cell_read(&cell, &reading));
		expect_context("state", first, 0);
		expect(reading.where != TIMERHUB_IN_CALLBACK || was_so(&reading));
		expect(states[first].fn == 0 || reading.where == TIMERHUB_IN_CALLBACK);
	}
}

/* A canceller searches all cells up to the last one that was ever taken. */
TEST(threads_of_one_cpu_take_cells_side_by_side, 20)
{
	struct callbacks callbacks = { .end = 0 };

	expect_eq(callbacks_open(&callbacks), 0);
	for (unsigned i = 0; i < 4; i++)
		expect_eq(callbacks_enter(&callbacks, 5) - callbacks.cells, 5 + i);
	callbacks_close(&callbacks);
}
