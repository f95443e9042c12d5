/* SPDX-License-Identifier: MIT */
/*
 * Counts slow callbacks in a table that has an entry for each function (slow_table.h). This file
 * has how a thread adds to an entry, how a full table gives an entry to another function, and how
 * the table is read.
 *
 * When slow_entry_enter() counts its thread in `gate`, another thread may already be giving the
 * entry to another function. Then SLOW_GIVING is set, or the other thread has finished and `fn` has
 * changed.
 */
#include "board/slow_table.h"

#include <stddef.h>

/* ---- entries ---- */

/*
 * Begins to use an entry of the table, if it belongs to the function `fn`. If it returns true,
 * slow_entry_leave() must follow.
 */
static bool slow_entry_enter(struct board_slow_entry *entry, uint64_t fn)
{
	/*
	 * Relaxed is enough, because this load only skips the entries of other functions quickly.
	 * The second load of `fn` decides whether the entry belongs to the function.
	 */
	if (u64_load_relaxed(&entry->fn) != fn)
		return false;
	/* Count this thread as a user of the entry. */
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
 * Counts a slow callback in the entry of its function or, if `claims` is true, in an unused entry,
 * which becomes the function's. Returns false if there is none.
 */
static bool slow_table_count(struct board_slow *table, uint64_t fn, bool claims, uint64_t took_ns,
                             uint64_t now_ns)
{
	for (unsigned i = 0; i < SLOW_FUNCTIONS; i++) {
		struct board_slow_entry *entry = &table->entries[i];
		uint64_t none = 0;

		/*
		 * If the entry is unused, make it the entry of `fn`. Relaxed is enough for this
		 * CAS, because an unused entry has no other values.
		 */
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

/*
 * Returns the least recently used of the entries that no thread is using, or NULL. *ret_gate is the
 * entry's `gate`, which counts its users.
 */
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

/*
 * Puts `fn` into a full table, in place of the function whose latest slow callback is the oldest.
 * May do nothing if other threads use the table at the same time.
 */
static void slow_table_replace(struct board_slow *table, uint64_t fn, uint64_t took_ns,
                               uint64_t now_ns)
{
	uint64_t gate;

	for (unsigned i = 0; i < SLOW_FUNCTIONS; i++) {
		struct board_slow_entry *entry = slow_table_oldest(table, &gate);

		if (!entry)
			return;
		/*
		 * From here on slow_entry_read() does not use what it reads from this entry,
		 * because it finds that `gate` has changed. [slow-entry]
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
		 * From here on slow_entry_read() can use the entry again: if it loads this `gate`,
		 * it finds the values that were stored above. [slow-entry]
		 */
		(void)u64_fetch_add_seq_cst(&entry->gate, SLOW_GIVEN_ONE - SLOW_GIVING);
		return;
	}
}

void slow_table_add(struct board_slow *table, uint64_t fn, uint64_t took_ns, uint64_t now_ns)
{
	/*
	 * Relaxed is enough, because these totals, over all functions, are only shown in
	 * statistics.
	 */
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
