/* SPDX-License-Identifier: MIT */
/*
 * Keeps RC11's partial order `psc` of the seq_cst accesses. An event is one seq_cst access. For
 * each event the set of all events that precede it in psc, directly or indirectly, is kept. An
 * event e directly follows an event g in three cases:
 *
 * - One thread makes the event g first, and the event e later.
 * - e accesses the same word as g, and comes after g in the word's order or happens after g.
 * - After g, the thread of g accesses a word that is not the word of g. Before e, the thread of e
 *   accesses a word that is not the word of e. The access after g happens before the access before
 *   e.
 */
#include "seq_cst_order.h"

#include <string.h>

#include "scheduler.h"

#define LEFT_NEVER INT32_MAX

static struct event {
	struct sc_word *word;
	uint32_t number;
	bool store;
	unsigned thread;
	int32_t epoch; /* epoch of the event's thread when it made the event */
	int32_t left;  /* epoch of the thread's next access to another word; or LEFT_NEVER */
} events[SC_EVENTS];
/* befores[i]: a bit for each kept event that precedes event i in psc */
static uint32_t befores[SC_EVENTS];
/* event n is events[n % SC_EVENTS] */
static unsigned events_made;

/* The kept events that precede a forgotten event. They count as preceding all later events. */
static uint32_t always;

/* For each thread: the word of its last access, and its view when it began to access that word. */
static struct {
	const void *word;
	struct memory_view other;
	unsigned horizon; /* value of events_made when the thread's call of the library began */
	uint32_t here;    /* a bit for each event of the thread since it began to access `word` */
} threads[MEMORY_THREADS];

void sc_begin(void)
{
	memset(events, 0, sizeof(events));
	memset(befores, 0, sizeof(befores));
	memset(threads, 0, sizeof(threads));
	events_made = 0;
	always = 0;
}

void sc_access(const void *word)
{
	unsigned self = scheduler_self();

	if (threads[self].word == word)
		return;
	for (uint32_t here = threads[self].here; here != 0; here &= here - 1)
		events[__builtin_ctz(here)].left = memory_known()->epochs[self];
	threads[self].here = 0;
	threads[self].word = word;
	threads[self].other = *memory_known();
}

void sc_call(void)
{
	threads[scheduler_self()].horizon = events_made;
}

void sc_forget(struct sc_word *word)
{
	for (; word->stores != 0; word->stores &= word->stores - 1)
		events[__builtin_ctz(word->stores)].store = false;
	word->floor = 0;
}

static unsigned first_kept(void)
{
	return events_made > SC_EVENTS ? events_made - SC_EVENTS : 0;
}

/* Returns whether, in psc, the event directly precedes the current actor's access to `word`. */
static bool event_precedes(const struct event *event, const struct sc_word *word, bool store,
                           const struct memory_view *after)
{
	if (!event->word)
		return false;
	if (event->thread == scheduler_self())
		return true;
	if (event->word == word && (store || event->epoch <= after->epochs[event->thread]))
		return true;
	return event->left <= threads[scheduler_self()].other.epochs[event->thread];
}

/* Rotates a set of events, so that the newest event has the highest bit. */
static uint32_t turned(uint32_t bits, unsigned turn)
{
	return bits >> turn | bits << (-turn & (SC_EVENTS - 1));
}

/*
 * Returns all events that precede an access to `word`. The search begins at the newest event,
 * because the predecessors of an event that was found need no check of their own.
 */
static uint32_t events_before(const struct sc_word *word, bool store,
                              const struct memory_view *after)
{
	unsigned turn = events_made % SC_EVENTS;
	uint32_t before = always;

	for (uint32_t left = turned(~before, turn); left != 0;) {
		unsigned highest = SC_EVENTS - 1 - (unsigned)__builtin_clz(left);
		unsigned index = (highest + turn) % SC_EVENTS;

		left &= ~(UINT32_C(1) << highest);
		if (event_precedes(&events[index], word, store, after)) {
			before |= befores[index] | UINT32_C(1) << index;
			left &= turned(~before, turn);
		}
	}
	return before;
}

/* Returns the stores after store `number`, which a load that returns this store misses. */
static uint32_t events_missed(const struct sc_word *word, uint32_t number)
{
	uint32_t missed = 0;

	for (uint32_t stores = word->stores; stores != 0; stores &= stores - 1)
		if (events[__builtin_ctz(stores)].number > number)
			missed |= stores & -stores;
	return missed;
}

bool sc_may_read(const struct sc_word *word, uint32_t number, const struct memory_view *after)
{
	uint32_t missed = events_missed(word, number);

	/* the load replaces the oldest event, which then precedes all, so it can't be missed */
	if ((missed >> events_made % SC_EVENTS & 1) != 0)
		return false;
	for (unsigned n = first_kept(); n < threads[scheduler_self()].horizon; n++)
		if ((missed >> n % SC_EVENTS & 1) != 0)
			return false;
	return number >= word->floor && (missed & events_before(word, false, after)) == 0;
}

static void event_forget(unsigned index)
{
	struct event *event = &events[index];
	uint32_t others = ~(UINT32_C(1) << index);

	always |= befores[index];
	always &= others;
	event->word->stores &= others;
	if (event->store && event->number > event->word->floor)
		event->word->floor = event->number;
	threads[event->thread].here &= others;
	for (unsigned i = 0; i < SC_EVENTS; i++)
		befores[i] &= others;
}

void sc_made(struct sc_word *word, uint32_t number, bool store)
{
	unsigned index = events_made++ % SC_EVENTS, self = scheduler_self();
	struct event *event = &events[index];
	uint32_t missed, before;

	if (event->word)
		event_forget(index);
	event->word = NULL;
	before = events_before(word, store, memory_known());
	missed = store ? 0 : events_missed(word, number);
	threads[self].here |= UINT32_C(1) << index;
	*event = (struct event){ .word = word,
		                 .number = number,
		                 .store = store,
		                 .thread = self,
		                 .epoch = memory_known()->epochs[self],
		                 .left = LEFT_NEVER };
	befores[index] = before;
	if (store)
		word->stores |= UINT32_C(1) << index;
	for (unsigned i = 0; i < SC_EVENTS && missed != 0; i++)
		if (((missed >> i & 1) != 0 || (missed & befores[i]) != 0) && i != index)
			befores[i] |= before | UINT32_C(1) << index;
}
