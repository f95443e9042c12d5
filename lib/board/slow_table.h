/* SPDX-License-Identifier: MIT */
/*
 * A table of the functions whose callbacks were slow, at most 32 of a hub or a loop. Any thread
 * adds to it when a callback was slow, which is seldom, and timerhub_slow() and other processes
 * read it.
 *
 * An entry begins to belong to a function by a compare-and-swap of `fn`. When all are taken, the
 * entry whose last slow callback is the longest ago is given to the new function. While a thread
 * adds to an entry, it is counted in a word of the entry, the gate, and an entry is given away only
 * while nobody is counted there. So nothing is ever added to another function's numbers, and nobody
 * waits for anybody.
 *
 * slow_table_replace() changes the gate before and after it stores the values of another function.
 * A reader loads the gate before and after the values. If the gate, apart from its number of users,
 * is the same both times, and says that the entry is not being given away, all values belong to one
 * function.
 *
 * In a race two entries can get the same function. Whoever reads the table adds them up.
 *
 * It is tested by tests/unit/test_slow_table.c.
 *
 * Labels: [slow-entry] slow_table_add → slow_table_add, slow_entry_read: carries the numbers, and
 *         that the entry was given away.
 */
#ifndef TIMERHUB_SLOW_TABLE_H
#define TIMERHUB_SLOW_TABLE_H

#include <timerhub.h>

#include "base/atomic.h"
#include "base/bits.h"

#define SLOW_FUNCTIONS 32

/*
 * An entry's gate is one word. Its parts, from the low bits up: how many threads use the entry,
 * whether it is being given to another function, and how often it was.
 */
#define SLOW_USERS_MASK ((UINT64_C(1) << 24) - 1)
#define SLOW_GIVING (UINT64_C(1) << 24)
#define SLOW_GIVEN_ONE (UINT64_C(1) << 25)

struct board_slow_entry {
	_Alignas(CACHE_LINE_BYTES) atomic_u64 gate;
	atomic_u64 fn;         /* the function's address; 0: the entry was never used */
	atomic_u64 count;      /* how often it was slow */
	atomic_u64 sum_ns;     /* how long these callbacks took together */
	atomic_u64 longest_ns; /* the longest of them */
	atomic_u64 last_ns; /* when the last of them ended, on the clock of the hub or the loop */
};

struct board_slow {
	_Alignas(CACHE_LINE_BYTES)
		atomic_u64 count; /* callbacks that were slow, of all functions */
	atomic_u64 sum_ns;        /* how long they took together */
	atomic_u64 replaced;      /* how often an entry was given to another function */
	struct board_slow_entry entries[SLOW_FUNCTIONS];
};

/*
 * A copy of one entry of the table: a function, how many of its callbacks were slow, and how long
 * those took. slow_entry_read() fills it.
 */
struct slow_reading {
	uint64_t fn, count, sum_ns, longest_ns, last_ns;
};

/* How often a reader tries to read an entry without its being changed meanwhile. */
#define SLOW_TRIES 64

/*
 * Reads an entry of the table. Returns false if it belongs to no function, or is being given to
 * another one.
 */
static inline bool slow_entry_read(const struct board_slow_entry *entry, struct slow_reading *ret)
{
	for (unsigned i = 0; i < SLOW_TRIES; i++) {
		/*
		 * Acquire: the loads below find values at least as new as this `gate`. [slow-entry]
		 */
		uint64_t gate = u64_load_acquire(&entry->gate) & ~SLOW_USERS_MASK;

		ret->fn = u64_load_acquire(&entry->fn);
		ret->count = u64_load_acquire(&entry->count);
		ret->sum_ns = u64_load_acquire(&entry->sum_ns);
		ret->longest_ns = u64_load_acquire(&entry->longest_ns);
		ret->last_ns = u64_load_acquire(&entry->last_ns);
		/*
		 * If `gate` has not changed, slow_table_replace() has not given the entry to
		 * another function meanwhile, so the values loaded above are all of one function.
		 * [slow-entry]
		 */
		if ((gate & SLOW_GIVING) == 0 &&
		    (u64_load_acquire(&entry->gate) & ~SLOW_USERS_MASK) == gate)
			return ret->fn != 0 && ret->count != 0;
	}
	return false;
}

/*
 * Fills `ret`, an array of SLOW_FUNCTIONS elements, with the functions that were slow, the one with
 * the longest single call first. Returns how many there are.
 */
static inline unsigned slow_table_read(const struct board_slow *table, struct slow_reading *ret)
{
	unsigned count = 0;

	for (unsigned i = 0; i < SLOW_FUNCTIONS; i++) {
		struct slow_reading one;
		unsigned at = 0;

		if (!slow_entry_read(&table->entries[i], &one))
			continue;
		while (at < count && ret[at].fn != one.fn)
			at++;
		if (at < count) { /* two entries of one function: take the first one out again */
			one.count += ret[at].count;
			one.sum_ns += ret[at].sum_ns;
			one.longest_ns = u64_max(one.longest_ns, ret[at].longest_ns);
			one.last_ns = u64_max(one.last_ns, ret[at].last_ns);
			for (count--; at < count; at++)
				ret[at] = ret[at + 1];
		}
		for (at = count++; at > 0 && ret[at - 1].longest_ns < one.longest_ns; at--)
			ret[at] = ret[at - 1];
		ret[at] = one;
	}
	return count;
}

/*
 * Counts a slow callback of the function `fn`, which took `took_ns` and ended at `now_ns`. Any
 * thread may call it.
 */
void slow_table_add(struct board_slow *table, uint64_t fn, uint64_t took_ns, uint64_t now_ns);

/*
 * Stores up to `max` functions that were slow, beginning with the one whose callback took longest,
 * and returns how many.
 */
int slow_table_list(const struct board_slow *table, struct timerhub_slow_callback *ret,
                    unsigned max);

#endif
