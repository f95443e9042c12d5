/* SPDX-License-Identifier: MIT */
/*
 * Tests the table of slow functions: which it keeps, and that numbers never get to another
 * function, whatever another thread does between two steps of an add or of a reader.
 */
#include "harness.h"

#include <string.h>
#include <timerhub.h>

#include "board/slow_table.h"

static struct board_slow table;

/* Returns what the table says of a function; its count is 0 if the table does not have it. */
static struct slow_reading reading_of(uint64_t fn)
{
	struct slow_reading readings[SLOW_FUNCTIONS];
	unsigned count = slow_table_read(&table, readings);

	for (unsigned i = 0; i < count; i++)
		if (readings[i].fn == fn)
			return readings[i];
	return (struct slow_reading){ .fn = fn };
}

TEST(a_function_has_its_count_sum_longest_and_last, 20)
{
	struct slow_reading reading;

	slow_table_add(&table, 7, 30, 100);
	slow_table_add(&table, 8, 10, 110);
	slow_table_add(&table, 7, 20, 150);
	reading = reading_of(7);
	expect_eq(reading.count, 2);
	expect_eq(reading.sum_ns, 50);
	expect_eq(reading.longest_ns, 30);
	expect_eq(reading.last_ns, 150);
	expect_eq(u64_load_relaxed(&table.count), 3);
	expect_eq(u64_load_relaxed(&table.sum_ns), 60);
}

TEST(the_slowest_come_first, 20)
{
	static const uint64_t took_ns[] = { 5, 9, 1, 7 };
	struct timerhub_slow_callback list[COUNT_OF(took_ns)];

	memset(list, 0xff, sizeof(list));
	for (unsigned i = 0; i < COUNT_OF(took_ns); i++)
		slow_table_add(&table, 100 + i, took_ns[i], 1000);
	expect_eq(slow_table_list(&table, list, 3), 3);
	expect_eq(list[0].longest_ns, 9);
	expect_eq(list[1].longest_ns, 7);
	expect_eq(list[2].longest_ns, 5);
	expect_eq(list[2].reserved[2], 0);
	expect((uintptr_t)list[0].fn == 101);
	expect_eq(slow_table_list(&table, list, COUNT_OF(list)), COUNT_OF(list));
	expect_eq(slow_table_list(&table, NULL, 0), 0);
}

TEST(a_function_too_many_replaces_the_one_that_is_longest_ago, 20)
{
	for (unsigned i = 0; i < SLOW_FUNCTIONS; i++)
		slow_table_add(&table, 1 + i, 10, 1000 + i);
	slow_table_add(&table, 1, 10, 2000); /* 2 is the longest ago now */
	expect_eq(u64_load_relaxed(&table.replaced), 0);
	slow_table_add(&table, 99, 11, 2001);
	expect_eq(u64_load_relaxed(&table.replaced), 1);
	expect_eq(reading_of(2).count, 0);
	expect_eq(reading_of(99).sum_ns, 11);
	expect_eq(reading_of(99).count, 1);
	for (unsigned i = 3; i <= SLOW_FUNCTIONS; i++)
		expect_eq(reading_of(i).count, 1);
	expect_eq(reading_of(1).count, 2);
	expect_eq(u64_load_relaxed(&table.count), SLOW_FUNCTIONS + 2);
}

static unsigned functions; /* how many functions there are; a callback of function f takes f ns */

static void check_readings(void)
{
	struct slow_reading readings[SLOW_FUNCTIONS];
	unsigned count = slow_table_read(&table, readings);

	for (unsigned i = 0; i < count; i++) {
		expect_le(1, readings[i].fn);
		expect_le(readings[i].fn, functions);
		/* a count can be read before its sum is added, and the other way round */
		expect_eq(readings[i].sum_ns % readings[i].fn, 0);
		expect(readings[i].longest_ns == readings[i].fn || readings[i].longest_ns == 0);
		for (unsigned k = 0; k < i; k++)
			expect(readings[k].fn != readings[i].fn);
	}
}

/* ---- between any two steps ---- */

void (*step_hook)(void);

static unsigned steps_left; /* how many atomic steps there are until the other thread comes */

/* What another thread does between two steps: it gives all entries to other functions, and on. */
static void replace_all(void)
{
	if (steps_left-- != 0)
		return;
	step_hook = NULL;
	for (unsigned i = 1; i <= 3 * SLOW_FUNCTIONS; i++)
		slow_table_add(&table, i, i, 1000 + i);
}

static void prepare_steps(unsigned steps)
{
	memset(&table, 0, sizeof(table));
	functions = 3 * SLOW_FUNCTIONS;
	for (unsigned i = 1; i <= SLOW_FUNCTIONS; i++)
		slow_table_add(&table, i, i, i);
	steps_left = steps;
	step_hook = replace_all;
}

TEST(an_entry_may_be_given_away_at_any_step_of_an_add, 60)
{
	unsigned steps = 0;

	/* functions that have an entry, the oldest one first, and one that has none */
	for (unsigned fn = 1; fn <= SLOW_FUNCTIONS + 1; fn += SLOW_FUNCTIONS / 2)
		for (unsigned i = 0;; i++, steps++) {
			prepare_steps(i);
			slow_table_add(&table, fn, fn, 5000);
			if (step_hook)
				break;
			expect_context("function and step", fn, i);
			check_readings();
		}
	step_hook = NULL;
	expect_lt(30, steps);
}

TEST(an_entry_may_be_given_away_at_any_step_of_a_reader, 60)
{
	unsigned i = 0;

	for (;; i++) {
		prepare_steps(i);
		expect_context("step", i, 0);
		check_readings();
		if (step_hook)
			break;
	}
	step_hook = NULL;
	expect_lt(100, i);
}
