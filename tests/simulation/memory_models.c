/* SPDX-License-Identifier: MIT */
/*
 * Decides which value an atomic load returns. The running actor calls it, and no other actor runs
 * meanwhile.
 *
 * In mode `c11` the modification order of a word is the order of execution. A thread's view is a
 * vector clock. Its own entry, the epoch, grows at each release. A store records, for each thread,
 * the epoch in which that thread made it or first read it. If a thread's view contains one of these
 * epochs, the thread may read no older store. This rule covers happens-before and the four kinds of
 * coherence.
 */
#include "memory_models.h"

#include <stdatomic.h>
#include <string.h>

#include "own_steps.h"
#include "plain_accesses.h"
#include "races.h"
#include "redirect_atomics.h"
#include "report.h"
#include "scheduler.h"
#include "seq_cst_order.h"
#include "weaken.h"

#define HISTORY 8
#define LOCATIONS_MAX 4096
#define TABLE_BITS 13
#define EPOCH_NEVER INT32_MAX

_Static_assert(MEMORY_THREADS >= ACTORS_MAX, "a view has an entry for each actor");

struct store {
	uint64_t value;
	bool weak;   /* true if the store was made by a weakened access or after such an access */
	bool change; /* true if the store was made by a read-modify-write */
	/* in a release sequence: who acquires it adds `released` to its view */
	bool carries;
	int32_t seen
		/* by thread: its epoch when it made or first read this store */
		[MEMORY_THREADS];
	struct memory_view released;
} __attribute__((aligned(64)));

/* The history of one atomic word. */
struct location {
	uint32_t count; /* number of stores made so far; store n is stores[n % HISTORY] */
	struct sc_word sc;
	bool freed;
	struct accesses accesses;
	struct store stores[HISTORY];
};

struct memory memory;
struct source_location simulation_line;
bool simulation_direct;

struct memory_view memory_views[MEMORY_THREADS];
static bool stale; /* the access in progress returns an older store than the newest */
static struct location locations[LOCATIONS_MAX];
/* by location */
static const volatile void *words[LOCATIONS_MAX];
static uint32_t locations_count;
static struct {
	uint32_t run, index;
	const volatile void *word;
	/* from a word's address to its location */
} table[1 << TABLE_BITS];
static uint32_t run;

/* ---- views ---- */

static void view_join(struct memory_view *view, const struct memory_view *other)
{
	for (unsigned i = 0; i < MEMORY_THREADS; i++)
		if (other->epochs[i] > view->epochs[i])
			view->epochs[i] = other->epochs[i];
}

/* At least one of them. */
static bool view_covers(const struct memory_view *view, const int32_t *epochs)
{
	int32_t covered = epochs[scheduler_self()] <= view->epochs[scheduler_self()];

	for (unsigned i = covered != 0 ? MEMORY_THREADS : 0; i < MEMORY_THREADS; i++)
		covered |= epochs[i] <= view->epochs[i];
	return covered != 0;
}

/* Before the actor synchronizes through `view`. False in mode sc, which has no views. */
static bool view_enter(const struct memory_view *view)
{
	if (memory.mode == MEMORY_SC)
		return false;
	sc_access(view);
	return true;
}

void memory_born(unsigned thread)
{
	if (!view_enter(&memory_views[thread]))
		return;
	view_join(&memory_views[thread], &memory_views[scheduler_self()]);
	memory_views[thread].epochs[thread]++;
	memory_views[scheduler_self()].epochs[scheduler_self()]++;
}

void memory_join(unsigned thread)
{
	if (view_enter(&memory_views[thread]))
		view_join(&memory_views[scheduler_self()], &memory_views[thread]);
}

void memory_publish(struct memory_view *view)
{
	if (!view_enter(view))
		return;
	view_join(view, &memory_views[scheduler_self()]);
	memory_views[scheduler_self()].epochs[scheduler_self()]++;
}

void memory_acquire(const struct memory_view *view)
{
	if (view_enter(view))
		view_join(&memory_views[scheduler_self()], view);
}

void memory_lock(struct memory_view *view)
{
	memory_acquire(view);
	memory_publish(view);
}

void memory_call(void)
{
	sc_call();
}

/* ---- the kernel ---- */

uint32_t memory_newest(const void *word)
{
	return (uint32_t)word_load(word, sizeof(uint32_t));
}

/* ---- locations ---- */

static bool inside(const volatile void *word, const void *base, size_t bytes)
{
	return (uintptr_t)word - (uintptr_t)base < bytes;
}

static _Noreturn void fail_freed(const volatile void *word)
{
	report_failure("%s:%d: memory is used that was freed, at %p", simulation_line.file,
	               simulation_line.line, (const void *)(uintptr_t)word);
}

/*
 * A plain write, made before others had the address: all know the value, and older stores are
 * forgotten.
 */
static void location_reset(struct location *location, uint64_t value)
{
	if (location->count > 0)
		accesses_check(&location->accesses, "a plain write", simulation_line);
	location->count = 1;
	sc_forget(&location->sc);
	location->stores[0] = (struct store){ .value = value };
}

static struct location *location_make(const volatile void *word)
{
	struct location *location = &locations[locations_count];

	words[locations_count++] = word;
	if (locations_count == LOCATIONS_MAX)
		report_failure("too many atomic words for the simulation");
	if (plain_is_freed(word))
		fail_freed(word);
	location->freed = false;
	memset(location->accesses.epochs, 0, sizeof(location->accesses.epochs));
	location->count = 0;
	location->sc = (struct sc_word){ 0 };
	return location;
}

/* Records that the current actor accesses the word, and returns the word's history. */
static struct location *location_of(const volatile void *word, unsigned bytes)
{
	uint32_t line = (uint32_t)((uintptr_t)word / 64) * 0x9e3779b1u >> (36 - TABLE_BITS);
	uint32_t at = line << 4 | ((uintptr_t)word / 4 & 15); /* a line's words stay together */
	struct location *location;
	uint64_t value;

	while (table[at].run == run && table[at].word != word)
		at = (at + 1) % (1 << TABLE_BITS);
	if (table[at].run != run) {
		table[at].run = run;
		table[at].word = word;
		table[at].index = locations_count;
		location = location_make(word);
	} else {
		location = &locations[table[at].index];
	}
	if (location->freed)
		fail_freed(word);
	value = word_load(word, bytes);
	if (location->count == 0 ||
	    location->stores[(location->count - 1) % HISTORY].value != value)
		location_reset(location, value);
	accesses_note(&location->accesses, simulation_line);
	sc_access(&location->sc);
	return location;
}

static struct store *location_newest(struct location *location)
{
	return &location->stores[(location->count - 1) % HISTORY];
}

static void store_see(struct store *store)
{
	int32_t epoch = memory_views[scheduler_self()].epochs[scheduler_self()];

	if (store->seen[scheduler_self()] > epoch)
		store->seen[scheduler_self()] = epoch;
}

/* A store that a load may return now, at random. */
static uint32_t location_choose(struct location *location, int order)
{
	const struct memory_view *known = memory_known();
	uint32_t newest = location->count - 1;
	uint32_t end = location->count > HISTORY ? location->count - HISTORY : 0;
	uint32_t oldest = newest, chosen;
	struct memory_view after;
	const struct store *store;

	while (oldest > end && !view_covers(known, location->stores[oldest % HISTORY].seen))
		oldest--;
	if (oldest == newest || scheduler.held > 0 ||
	    !dice_one_in(&memory.dice, weaken_stale_one_in(location_newest(location)->weak)))
		return newest;
	chosen = oldest + (unsigned)dice_below(&memory.dice, newest - oldest);
	stale = true;
	if (order != memory_order_seq_cst)
		return chosen;
	store = &location->stores[chosen % HISTORY];
	after = *known;
	if (store->carries)
		view_join(&after, &store->released);
	return sc_may_read(&location->sc, chosen, &after) ? chosen : newest;
}

/*
 * Fails if C11 allows the new store to precede the word's last store: that is not modelled. Seq_cst
 * stores and the files in races.c are exempt. Whatever follows the store that a read-modify-write
 * has read, follows the read-modify-write too.
 */
static void location_check_order(const struct location *location, int order)
{
	uint32_t last = location->count;
	const struct store *before;

	do {
		before = &location->stores[--last % HISTORY];
		if (view_covers(memory_known(), before->seen))
			return;
	} while (before->change && last > 0 && last + HISTORY > location->count);
	if (order != memory_order_seq_cst && !races_allowed(simulation_line))
		report_failure("%s:%d: a store may be lost, since it is not ordered after another",
		               simulation_line.file, simulation_line.line);
}

static bool order_releases(int order)
{
	return order == memory_order_release || order == memory_order_acq_rel ||
	       order == memory_order_seq_cst;
}

/*
 * A read-modify-write continues the release sequences before it. After a step's last store the
 * caller calls location_added().
 */
static void location_add(struct location *location, uint64_t value, int order, bool change)
{
	const struct store *before = location_newest(location);
	struct store *store = &location->stores[location->count++ % HISTORY];
	bool goes_on = change && before->carries;
	bool releases = order_releases(order);

	store->released = goes_on ? before->released : (struct memory_view){ { 0 } };
	store->carries = goes_on || releases;
	store->change = change;
	store->weak = weaken_made() || (change && before->weak);
	if (releases)
		view_join(&store->released, &memory_views[scheduler_self()]);
	store->value = value;
	for (unsigned i = 0; i < MEMORY_THREADS; i++)
		store->seen[i] = EPOCH_NEVER;
	store_see(store);
	if (order == memory_order_seq_cst)
		sc_made(&location->sc, location->count - 1, true);
}

static void location_added(int order)
{
	if (order_releases(order))
		memory_views[scheduler_self()].epochs[scheduler_self()]++;
}

static uint64_t location_read(struct location *location, uint32_t number, int order)
{
	struct store *store = &location->stores[number % HISTORY];

	store_see(store);
	if (store->weak)
		weaken_seen();
	if (store->carries && order != memory_order_relaxed && order != memory_order_release)
		view_join(&memory_views[scheduler_self()], &store->released);
	if (order == memory_order_seq_cst)
		sc_made(&location->sc, number, false);
	return store->value;
}

/* Returns the word's newest value, as a read-modify-write reads it. */
static uint64_t location_take(struct location *location, int order)
{
	return location_read(location, location->count - 1,
	                     order == memory_order_seq_cst ? memory_order_acq_rel : order);
}

/* ---- the accesses ---- */

/* Whether it uses the machine's memory. */
static bool memory_direct(void)
{
	return memory.mode == MEMORY_SC || memory.peeking;
}

static uint64_t load_ordered(const volatile void *word, unsigned bytes, int order)
{
	struct location *location;

	if (memory_direct())
		return word_load(word, bytes);
	location = location_of(word, bytes);
	return location_read(location, location_choose(location, order), order);
}

/* Counts the access as a step of the actor's call: own_steps.c limits a call's steps. */
static void count_step(const volatile void *word, bool wrote)
{
	if (!own_steps_counted || memory.peeking)
		return;
	own_steps_make(word, stale);
	stale = false;
	if (wrote)
		own_steps_wrote(word);
}

uint64_t memory_load(const volatile void *word, unsigned bytes, int order)
{
	uint64_t value = load_ordered(word, bytes, weaken_order(order));

	count_step(word, false);
	return value;
}

void memory_store(volatile void *word, unsigned bytes, uint64_t value, int order)
{
	struct location *location;

	order = weaken_order(order);
	if (!memory_direct()) {
		location = location_of(word, bytes);
		location_check_order(location, order);
		location_add(location, value, order, false);
		location_added(order);
	}
	word_store(word, bytes, value);
	count_step(word, true);
}

void memory_tell(uint32_t *word, uint32_t value)
{
	simulation_line = (struct source_location){ __FILE__, __LINE__ };
	simulation_store(word, sizeof(*word), value, memory_order_release);
}

/* Always reads the newest store. */
uint64_t memory_change(volatile void *word, unsigned bytes, enum simulation_change change,
                       uint64_t operand, int order)
{
	struct location *location;
	uint64_t before, after;

	order = weaken_order(order);
	count_step(word, true);
	if (order == WEAKEN_LOAD)
		return load_ordered(word, bytes, memory_order_seq_cst);
	if (memory_direct()) {
		before = word_load(word, bytes);
		word_store(word, bytes, simulation_changed(before, change, operand));
		return before;
	}
	location = location_of(word, bytes);
	before = location_take(location, order);
	after = simulation_changed(before, change, operand);
	if (bytes == sizeof(uint32_t))
		after = (uint32_t)after;
	location_add(location, after, order, true);
	location_added(order);
	word_store(word, bytes, after);
	return before;
}

/* If it fails, it may have read an older store. */
static bool location_cas(struct location *location, uint64_t *expected, uint64_t value, int order,
                         int order_failed)
{
	uint32_t number = location_choose(location, order_failed);

	if (location->stores[number % HISTORY].value == *expected)
		number = location->count - 1;
	if (location->stores[number % HISTORY].value != *expected) {
		*expected = location_read(location, number, order_failed);
		return false;
	}
	(void)location_take(location, order);
	location_add(location, value, order, true);
	location_added(order);
	return true;
}

static int order_failed_of(int order)
{
	if (order == memory_order_acq_rel)
		return memory_order_acquire;
	return order == memory_order_release ? memory_order_relaxed : order;
}

bool memory_cas(volatile void *word, unsigned bytes, void *expected, uint64_t value, int order,
                int order_failed)
{
	int here = weaken_order(order);
	uint64_t seen = word_load(expected, bytes);
	bool done;

	if (memory_direct()) {
		done = word_load(word, bytes) == seen;
		seen = word_load(word, bytes);
	} else {
		done = location_cas(location_of(word, bytes), &seen, value, here,
		                    here == order ? order_failed : order_failed_of(here));
	}
	if (done)
		word_store(word, bytes, value);
	else
		word_store(expected, bytes, seen);
	count_step(word, done);
	return done;
}

/* Returns whether both words are `before`. An older store of either word may cause a mismatch. */
static bool locations_match(struct location *low, struct location *high, unsigned __int128 before)
{
	uint32_t number_low = location_choose(low, memory_order_relaxed);
	uint32_t number_high = location_choose(high, memory_order_relaxed);
	uint64_t value_low = low->stores[number_low % HISTORY].value;
	uint64_t value_high = high->stores[number_high % HISTORY].value;

	if (value_low == (uint64_t)before && value_high == (uint64_t)(before >> 64))
		return location_newest(low)->value == value_low &&
		       location_newest(high)->value == value_high;
	(void)location_read(low, number_low, memory_order_relaxed);
	(void)location_read(high, number_high, memory_order_relaxed);
	return false;
}

/* Compares and swaps both words in one step. A release stores the thread's view with each word. */
static bool locations_cas(struct location *low, struct location *high, unsigned __int128 before,
                          unsigned __int128 after, int order)
{
	if (!locations_match(low, high, before))
		return false;
	(void)location_take(low, order);
	(void)location_take(high, order);
	location_add(low, (uint64_t)after, order, true);
	location_add(high, (uint64_t)(after >> 64), order, true);
	location_added(order);
	return true;
}

static void count_step_on_pair(volatile void *pair, bool wrote)
{
	if (!own_steps_counted || memory.peeking)
		return;
	own_steps_make_pair(pair, stale);
	stale = false;
	if (!wrote)
		return;
	own_steps_wrote(pair);
	own_steps_wrote(pair_high(pair));
}

bool memory_cas_pair(volatile void *pair, unsigned __int128 before, unsigned __int128 after,
                     int order)
{
	bool done;

	order = weaken_order(order);
	if (memory_direct()) {
		done = pair_load(pair) == before;
	} else {
		struct location *low = location_of(pair, sizeof(uint64_t));

		done = locations_cas(low, location_of(pair_high(pair), sizeof(uint64_t)), before,
		                     after, order);
	}
	if (done)
		pair_store(pair, after);
	count_step_on_pair(pair, done);
	return done;
}

/* ---- allocation ---- */

void memory_allocated(const void *base, size_t bytes)
{
	if (memory.mode == MEMORY_SC)
		return;
	plain_allocated(base, bytes);
	for (uint32_t i = 0; i < locations_count; i++)
		if (inside(words[i], base, bytes)) {
			locations[i].freed = false;
			locations[i].count = 0;
			memset(&locations[i].accesses, 0, sizeof(locations[i].accesses));
		}
}

void memory_freed(const void *base, size_t bytes)
{
	if (memory.mode == MEMORY_SC)
		return;
	plain_freed(base, bytes);
	for (uint32_t i = 0; i < locations_count; i++) {
		if (!inside(words[i], base, bytes) || locations[i].freed)
			continue;
		accesses_check(&locations[i].accesses, "the freeing of memory", simulation_line);
		locations[i].freed = true;
	}
}

/* ---- a run ---- */

void memory_peek(bool peek)
{
	memory.peeking = peek;
	simulation_direct =
		peek || (memory.mode == MEMORY_SC && !weaken_asked && !own_steps_counted);
	plain_watch(!peek);
}

void memory_begin(enum memory_mode mode, struct dice dice)
{
	memory = (struct memory){ .mode = mode, .dice = dice };
	memory.stale_one_in = UINT32_C(2) << dice_below(&memory.dice, 5);
	(void)dice_roll(&memory.dice); /* so that the seeds make the runs that they made before */
	memset(memory_views, 0, sizeof(memory_views));
	sc_begin();
	plain_begin();
	weaken_begin();
	memory_peek(false);
	memory_views[0].epochs[0] = 1;
	run++;
	locations_count = 0;
}
