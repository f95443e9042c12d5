/* SPDX-License-Identifier: MIT */
/*
 * See sc.h. Of each event all that psc has before it are kept, transitively. An event e follows g
 * if it is later on the same thread, or on the same word and reads or writes what g did not yet see
 * or happens after it, or if accesses of other words lead from g by happens-before to e.
 */
#include "sc.h"

#include <string.h>

#include "scheduler.h"

#define EVENTS 32
#define LEFT_NEVER INT32_MAX

static struct event {
	struct sc_word *word;
	uint32_t number;
	bool store;
	unsigned thread;
	int32_t epoch;   /* of its thread, when it was made */
	int32_t left;    /* when its thread first accessed another word afterwards */
	uint32_t before; /* bit per event */
} events[EVENTS];
static unsigned events_made; /* event n is events[n % EVENTS] */

/* Before everything that follows. */
static uint32_t always;

/* What a thread accessed last, and what it knew when it last accessed another word. */
static struct {
	const void *word;
	struct memory_view other;
	unsigned horizon; /* events made before its call began */
	uint32_t here;    /* bit per event of its own after which it accessed no other word */
} threads[MEMORY_THREADS];

void sc_begin(void)
{
	memset(events, 0, sizeof(events));
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

static unsigned first_kept(void)
{
	return events_made > EVENTS ? events_made - EVENTS : 0;
}

/* Does this event come before what the current actor does to the word? */
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

/* From the newest event to the oldest: a later event's `before` names most of the older ones. */
static uint32_t events_before(const struct sc_word *word, bool store,
                              const struct memory_view *after)
{
	uint32_t before = always;

	for (unsigned n = events_made; n-- > first_kept();) {
		const struct event *event = &events[n % EVENTS];
		uint32_t bit = UINT32_C(1) << n % EVENTS;

		if ((before & bit) == 0 && event_precedes(event, word, store, after))
			before |= event->before | bit;
	}
	return before;
}

/* The stores that a load of this one misses. */
static uint32_t events_missed(const struct sc_word *word, uint32_t number)
{
	uint32_t missed = 0;

	for (unsigned i = 0; i < EVENTS; i++)
		if (events[i].word == word && events[i].store && events[i].number > number)
			missed |= UINT32_C(1) << i;
	return missed;
}

bool sc_may_read(const struct sc_word *word, uint32_t number, const struct memory_view *after)
{
	uint32_t missed = events_missed(word, number);

	for (unsigned n = first_kept(); n < threads[scheduler_self()].horizon; n++)
		if ((missed >> n % EVENTS & 1) != 0)
			return false;
	return number >= word->floor && (missed & events_before(word, false, after)) == 0;
}

static void event_forget(unsigned index)
{
	struct event *event = &events[index];
	uint32_t others = ~(UINT32_C(1) << index);

	always |= event->before;
	always &= others;
	if (event->store && event->number > event->word->floor)
		event->word->floor = event->number;
	threads[event->thread].here &= others;
	for (unsigned i = 0; i < EVENTS; i++)
		events[i].before &= others;
}

void sc_made(struct sc_word *word, uint32_t number, bool store)
{
	unsigned index = events_made++ % EVENTS, self = scheduler_self();
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
		                 .left = LEFT_NEVER,
		                 .before = before };
	for (unsigned i = 0; i < EVENTS && missed != 0; i++)
		if (((missed >> i & 1) != 0 || (missed & events[i].before) != 0) && i != index)
			events[i].before |= before | UINT32_C(1) << index;
}
