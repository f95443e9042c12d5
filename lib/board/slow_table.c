/* SPDX-License-Identifier: MIT */
/*
 * Counts slow callbacks in a table that has an entry for each function (slow_table.h). This file
 * has how a thread adds to an entry, how a full table gives an entry to another function, and how
 * the table is read.
 *
 * The gate of an entry. A thread that adds to the entry first counts itself in the gate, and then
 * loads `fn` again. A thread that gives the entry away sets SLOW_GIVING by a CAS that expects no
 * users. Both are seq_cst. If the CAS comes first, the adding thread sees SLOW_GIVING or the new
 * function, and leaves. If the count comes first, the CAS fails.
 *
 * Readers (slow_entry_read() in slow_table.h) write nothing. slow_table_replace() changes the gate
 * before it stores the new numbers and again afterwards. A reader that has loaded any new number
 * sees the first change when it loads the gate again. A reader that sees the second change at its
 * start sees all new numbers.
 */
#include "board/slow_table.h"

#include <stddef.h>

/* ---- entries ---- */

/* Begins to add to the entry of `fn`. Returns false if it has another function. */
static bool slow_entry_enter(struct board_slow_entry *entry, uint64_t fn)
{
	/*
	 * Relaxed, because this load only skips other functions' entries. The second load of `fn`
	 * decides.
	 */
	if (u64_load_relaxed(&entry->fn) != fn)
		return false;
	/*
	 * Either this sees SLOW_GIVING, or the CAS that sets SLOW_GIVING fails (see the head of
	 * this file).
	 */
	if ((u64_fetch_add_seq_cst(&entry->gate, 1) & SLOW_GIVING) == 0 &&
	    u64_load_acquire(&entry->fn) == fn)
		return true;
	(void)u64_fetch_add_seq_cst(&entry->gate, UINT64_MAX);
	return false;
}

static void slow_entry_leave(struct board_slow_entry *entry)
{
	(void)u64_fetch_add_seq_cst(&entry->gate, UINT64_MAX);
}

static void slow_entry_count(struct board_slow_entry *entry, uint64_t took_ns, uint64_t now_ns)
{
	/* Relaxed is enough, because these numbers are only shown in statistics. */
	(void)u64_fetch_add_relaxed(&entry->count, 1);
	(void)u64_fetch_add_relaxed(&entry->sum_ns, took_ns);
	u64_raise(&entry->longest_ns, took_ns);
	u64_raise(&entry->last_ns, now_ns);
}

/* ---- the table ---- */

/*
 * Counts a slow callback in its function's entry, which `claims` may create. Returns false without
 * one.
 */
static bool slow_table_count(struct board_slow *table, uint64_t fn, bool claims, uint64_t took_ns,
                             uint64_t now_ns)
{
	for (unsigned i = 0; i < SLOW_FUNCTIONS; i++) {
		struct board_slow_entry *entry = &table->entries[i];
		uint64_t none = 0;

		/* Claim an unused entry, relaxed, because its counters are 0 from the start. */
		if (claims)
			(void)u64_cas_relaxed(&entry->fn, &none, fn);
		if (!slow_entry_enter(entry, fn))
			continue;
		slow_entry_count(entry, took_ns, now_ns);
		slow_entry_leave(entry);
		return true;
	}
	return false;
}

/* Returns the least recently used entry that no thread is adding to, or NULL. */
static struct board_slow_entry *slow_table_oldest(struct board_slow *table, uint64_t *ret_gate)
{
	struct board_slow_entry *oldest = NULL;
	uint64_t oldest_ns = UINT64_MAX;

	for (unsigned i = 0; i < SLOW_FUNCTIONS; i++) {
		struct board_slow_entry *entry = &table->entries[i];
		uint64_t gate = u64_load_acquire(&entry->gate);
		uint64_t last_ns = u64_load_relaxed(&entry->last_ns); /* relaxed: a hint */

		if ((gate & (SLOW_USERS_MASK | SLOW_GIVING)) == 0 && last_ns < oldest_ns) {
			oldest = entry;
			oldest_ns = last_ns;
			*ret_gate = gate;
		}
	}
	return oldest;
}

/* Gives the entry of another function to `fn`, and counts the slow callback there. */
static void slow_table_replace(struct board_slow *table, uint64_t fn, uint64_t took_ns,
                               uint64_t now_ns)
{
	uint64_t gate;

	for (unsigned i = 0; i < SLOW_FUNCTIONS; i++) {
		struct board_slow_entry *entry = slow_table_oldest(table, &gate);

		if (!entry)
			return;
		/*
		 * [slow-entry] A reader that finds a new value in the entry also finds the new
		 * `gate`.
		 */
		if (!u64_cas_seq_cst(&entry->gate, &gate, gate | SLOW_GIVING))
			continue;
		u64_store_release(&entry->fn, fn);
		u64_store_release(&entry->count, 1);
		u64_store_release(&entry->sum_ns, took_ns);
		u64_store_release(&entry->longest_ns, took_ns);
		u64_store_release(&entry->last_ns, now_ns);
		(void)u64_fetch_add_relaxed(&table->replaced, 1); /* relaxed: only shown */
		/*
		 * [slow-entry] A reader whose first load finds this gate sees all the values above.
		 */
		(void)u64_fetch_add_seq_cst(&entry->gate, SLOW_GIVEN_ONE - SLOW_GIVING);
		return;
	}
}

void slow_table_add(struct board_slow *table, uint64_t fn, uint64_t took_ns, uint64_t now_ns)
{
	/* Relaxed, because these totals of all functions are only shown. */
	(void)u64_fetch_add_relaxed(&table->count, 1);
	(void)u64_fetch_add_relaxed(&table->sum_ns, took_ns);
	if (!slow_table_count(table, fn, false, took_ns, now_ns) &&
	    !slow_table_count(table, fn, true, took_ns, now_ns))
		slow_table_replace(table, fn, took_ns, now_ns);
}

int slow_table_list(const struct board_slow *table, struct timerhub_slow_callback *ret,
                    unsigned max)
{
	struct slow_reading readings[SLOW_FUNCTIONS];
	unsigned count = slow_table_read(table, readings);

	if (count > max)
		count = max;
	for (unsigned i = 0; i < count; i++)
		ret[i] = (struct timerhub_slow_callback){
			.fn = (timerhub_any_fn *)(uintptr_t)readings[i].fn,
			.count = readings[i].count,
			.sum_ns = readings[i].sum_ns,
			.longest_ns = readings[i].longest_ns,
			.last_ns = readings[i].last_ns,
		};
	return (int)count;
}
