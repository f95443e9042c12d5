/* SPDX-License-Identifier: MIT */
#include "buffers.h"

#include <string.h>

#include "memory_models.h"
#include "own_steps.h"
#include "raw_memory.h"
#include "scheduler.h"

#define BUFFER_MAX 16

/* Not in memory yet: only its thread reads it. */
struct buffered {
	volatile void *word;
	unsigned bytes;
	uint64_t value;
};

static struct {
	struct buffered stores[BUFFER_MAX];
	unsigned count;
} buffers[MEMORY_THREADS];
static uint32_t buffers_used; /* a bit for each thread whose buffer is not empty */

void buffers_begin(void)
{
	for (unsigned thread = 0; thread < MEMORY_THREADS; thread++)
		buffers[thread].count = 0;
	buffers_used = 0;
}

static void buffer_drain_one(unsigned thread)
{
	struct buffered *stores = buffers[thread].stores;

	word_store(stores[0].word, stores[0].bytes, stores[0].value);
	if (own_steps_counted)
		own_steps_wrote(stores[0].word, thread);
	memmove(stores, stores + 1, --buffers[thread].count * sizeof(stores[0]));
	if (buffers[thread].count == 0)
		buffers_used &= ~(UINT32_C(1) << thread);
}

void buffer_drain(unsigned thread)
{
	while (buffers[thread].count > 0)
		buffer_drain_one(thread);
}

void buffers_drain_some(void)
{
	while (buffers_used != 0 && scheduler.held == 0 &&
	       dice_one_in(&memory.dice, memory.drain_one_in)) {
		uint32_t used = buffers_used;
		unsigned skip =
			(unsigned)dice_below(&memory.dice, (unsigned)__builtin_popcount(used));

		while (skip-- > 0)
			used &= used - 1;
		buffer_drain_one((unsigned)__builtin_ctz(used));
	}
}

void buffer_store(volatile void *word, unsigned bytes, uint64_t value)
{
	if (buffers[scheduler_self()].count == BUFFER_MAX)
		buffer_drain_one(scheduler_self());
	buffers[scheduler_self()].stores[buffers[scheduler_self()].count++] =
		(struct buffered){ .word = word, .bytes = bytes, .value = value };
	buffers_used |= UINT32_C(1) << scheduler_self();
}

uint64_t buffer_load(const volatile void *word, unsigned bytes)
{
	for (unsigned i = buffers[scheduler_self()].count; i-- > 0;)
		if (buffers[scheduler_self()].stores[i].word == word)
			return buffers[scheduler_self()].stores[i].value;
	return word_load(word, bytes);
}
