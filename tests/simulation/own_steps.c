/* SPDX-License-Identifier: MIT */
/* Implements own_steps.h. */
#include "own_steps.h"

#include <string.h>

#include "raw_memory.h"
#include "redirect_atomics.h"
#include "report.h"
#include "scheduler.h"

/*
 * Undisturbed, for one timer. An arm makes the most, 57 in 18,000 runs: it searches four shards and
 * looks at their stacks, writes pair and record, pushes past two lines, and reads the promise.
 */
#define STEPS_ALONE 64
/* a changed stack makes an arm search four shards again */
#define STEPS_CAUSED 32

#define TABLE_BITS 13

bool own_steps_counted;

static struct own_steps *calls[ACTORS_MAX];
static uint64_t stamp;
static uint32_t run;

/* Each written word's last write, and whose it was. */
static struct written {
	uint32_t run;
	const volatile void *word;
	uint64_t at, by;
} table[1 << TABLE_BITS];
static unsigned table_used;

void own_steps_start(bool counted)
{
	memset(calls, 0, sizeof(calls));
	own_steps_counted = counted;
	table_used = 0;
	stamp = 0;
	run++;
}

void own_steps_begin(struct own_steps *call, const char *name, unsigned timers)
{
	memset(call, 0, sizeof(*call));
	call->name = name;
	call->begin = ++stamp;
	call->allowed = STEPS_ALONE * timers;
	calls[scheduler_self()] = call;
}

void own_steps_end(const struct own_steps *call)
{
	if (calls[scheduler_self()] == call)
		calls[scheduler_self()] = NULL;
}

struct own_steps *own_steps_pause(void)
{
	struct own_steps *paused = calls[scheduler_self()];

	calls[scheduler_self()] = NULL;
	return paused;
}

void own_steps_resume(struct own_steps *paused)
{
	calls[scheduler_self()] = paused;
}

static uint32_t word_hash(const volatile void *word)
{
	return (uint32_t)((uintptr_t)word / 4) * 0x9e3779b1u;
}

static struct written *written_find(const volatile void *word)
{
	uint32_t at = word_hash(word) >> (32 - TABLE_BITS);

	while (table[at].run == run && table[at].word != word)
		at = (at + 1) % (1 << TABLE_BITS);
	return &table[at];
}

/* Returns the stamp of the call's last access to the word, and stores the present stamp. */
static uint64_t call_sees(struct own_steps *call, const volatile void *word)
{
	uint32_t at = word_hash(word) >> 26; /* below OWN_WORDS */

	for (unsigned i = 0; i < OWN_WORDS; i++, at = (at + 1) % OWN_WORDS) {
		uint64_t seen = call->words[at].seen;

		if (call->words[at].word && call->words[at].word != word)
			continue;
		call->words[at].word = word;
		call->words[at].seen = stamp;
		return seen > 0 ? seen : call->begin;
	}
	return call->begin;
}

/* Whether another call has written it since this one saw it last. */
static bool call_is_disturbed(struct own_steps *call, const volatile void *word)
{
	const struct written *written = written_find(word);
	uint64_t seen = call_sees(call, word);

	return written->run == run && written->at > seen && written->by != call->begin;
}

static void call_step(struct own_steps *call, bool disturbed)
{
	if (disturbed)
		call->allowed += STEPS_CAUSED;
	if (++call->steps > call->allowed)
		report_failure("%s made %u steps of its own, the last in %s:%d", call->name,
		               call->steps, simulation_line.file, simulation_line.line);
}

void own_steps_make(const volatile void *word, bool stale)
{
	struct own_steps *call = calls[scheduler_self()];

	stamp++;
	if (call && scheduler.held == 0)
		call_step(call, call_is_disturbed(call, word) || stale);
}

void own_steps_make_pair(volatile void *pair, bool stale)
{
	struct own_steps *call = calls[scheduler_self()];
	bool disturbed;

	stamp++;
	if (!call || scheduler.held > 0)
		return;
	disturbed = call_is_disturbed(call, pair);
	disturbed |= call_is_disturbed(call, pair_high(pair));
	call_step(call, disturbed || stale);
}

void own_steps_wrote(const volatile void *word)
{
	struct written *written = written_find(word);

	if (written->run != run && ++table_used > (1 << TABLE_BITS) / 2)
		report_failure("too many atomic words for the count of steps");
	*written = (struct written){
		.run = run,
		.word = word,
		.at = stamp,
		.by = calls[scheduler_self()] ? calls[scheduler_self()]->begin : 0,
	};
}
