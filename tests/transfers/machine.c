/* SPDX-License-Identifier: MIT */
/*
 * See machine.h. An access takes a tick, one to a line that others have so many more. A processor
 * whose clock has passed the end of the turn lets the next one run before its access is made.
 */
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../simulation/coroutine.h"

#define STACK_BYTES 65536
#define TURN_TICKS 40
/*
 * What a line from another processor costs, one from another node, one that was asked for long
 * before, and a locked instruction, beyond the tick that each access takes.
 */
#define TRANSFER_TICKS 60
#define REMOTE_TICKS 120
#define AHEAD_TICKS 10
#define LOCKED_TICKS 6

struct processor {
	struct coroutine coroutine;
	struct tally *tally;
	uint64_t clock, steps;
	bool fetches_ahead;
};

static struct machine_setup setup;
static struct processor processors[PROCESSORS_MAX];
static char *stacks;
static struct coroutine director;
static struct processor *self; /* NULL while none runs */
static uint64_t turn_end;
static struct tally unasked;

static void processor_entry(void)
{
	coroutine_entered(&self->coroutine);
	setup.body((unsigned)(self - processors));
}

void machine_begin(const struct machine_setup *given)
{
	setup = *given;
	lines_begin(setup.node_of);
	coroutine_init_thread(&director);
	free(stacks);
	stacks = malloc((size_t)setup.processors * STACK_BYTES);
	if (!stacks) {
		perror("transfers");
		exit(2);
	}
	for (unsigned i = 0; i < setup.processors; i++) {
		processors[i] = (struct processor){ .tally = &unasked };
		coroutine_init(&processors[i].coroutine, stacks + (size_t)i * STACK_BYTES,
		               STACK_BYTES, processor_entry);
	}
}

void machine_run(uint64_t steps, unsigned steppers)
{
	bool done;

	for (unsigned i = 0; i < steppers; i++)
		processors[i].steps = 0;
	do {
		turn_end += TURN_TICKS;
		for (unsigned i = 0; i < setup.processors; i++) {
			self = &processors[i];
			if (self->clock < turn_end)
				coroutine_switch(&director, &self->coroutine);
		}
		self = NULL;
		done = true;
		for (unsigned i = 0; i < steppers; i++)
			done &= processors[i].steps >= steps;
	} while (!done);
}

bool machine_running(void)
{
	return self != NULL;
}

uint64_t machine_time(void)
{
	return turn_end;
}

struct tally *machine_charge(struct tally *tally)
{
	struct tally *before = self->tally;

	self->tally = tally;
	return before;
}

void machine_fetches_ahead(void)
{
	self->fetches_ahead = true;
}

void machine_step(void)
{
	self->steps++;
}

void machine_idle(void)
{
	self->clock = turn_end;
	coroutine_switch(&self->coroutine, &director);
}

unsigned machine_self(void)
{
	return (unsigned)(self - processors);
}

uint64_t machine_now(void)
{
	return self->clock;
}

/* ---- accesses ---- */

static void charge(uintptr_t at, struct line_move move, bool locked)
{
	struct tally *tally = self->tally;
	uint64_t ticks = 1 + (locked ? LOCKED_TICKS : 0);

	if (move.fetched || move.invalidated) {
		if (self->fetches_ahead)
			ticks += AHEAD_TICKS;
		else
			ticks += move.remote ? REMOTE_TICKS : TRANSFER_TICKS;
		tally->moves[setup.place_of ? setup.place_of(at) : PLACE_OTHER]++;
	}
	tally->accesses++;
	tally->fetched += move.fetched;
	tally->remote += move.remote;
	tally->invalidated += move.invalidated;
	tally->locked += locked;
	tally->ticks += ticks;
	self->clock += ticks;
}

static void machine_access(const volatile void *address, size_t bytes, bool write, bool locked)
{
	uintptr_t at = (uintptr_t)address;
	uintptr_t stack;

	if (!self)
		return; /* while a hub is opened */
	stack = (uintptr_t)self->coroutine.stack;
	if (at - stack < STACK_BYTES || (setup.ignored && setup.ignored(at)))
		return;
	if (self->clock >= turn_end)
		coroutine_switch(&self->coroutine, &director);
	for (uintptr_t line = at & ~(uintptr_t)(LINE_BYTES - 1); line < at + bytes;
	     line += LINE_BYTES) {
		charge(at, lines_access(line, machine_self(), write), locked);
		locked = false;
	}
}

/* ---- what the compiler calls ---- */

#define TSAN_ACCESS(address, bytes, write) machine_access(address, bytes, write, false)
#define TSAN_ALIGNED TSAN_ACCESS
#include "../simulation/tsan_calls.h"

/* The word becomes `after`, an expression of `before`, what it was, and of the operand `value`. */
#define CHANGE(name, type, after)                                                                  \
	type name(volatile type *at, type value, int order);                                       \
	type name(volatile type *at, type value, int order)                                        \
	{                                                                                          \
		type before;                                                                       \
                                                                                                   \
		(void)order;                                                                       \
		machine_access(at, sizeof(type), true, true);                                      \
		before = *at;                                                                      \
		*at = after;                                                                       \
		return before;                                                                     \
	}

/* A sequentially consistent store is a locked exchange on x86-64; every change of a word is. */
#define ATOMIC(bits, type)                                                                         \
	type __tsan_atomic##bits##_load(const volatile type *at, int order);                       \
	void __tsan_atomic##bits##_store(volatile type *at, type value, int order);                \
	int __tsan_atomic##bits##_compare_exchange_strong(volatile type *at, type *expected,       \
	                                                  type value, int order, int failed);      \
	type __tsan_atomic##bits##_load(const volatile type *at, int order)                        \
	{                                                                                          \
		(void)order;                                                                       \
		machine_access(at, sizeof(type), false, false);                                    \
		return *at;                                                                        \
	}                                                                                          \
	void __tsan_atomic##bits##_store(volatile type *at, type value, int order)                 \
	{                                                                                          \
		machine_access(at, sizeof(type), true, order == __ATOMIC_SEQ_CST);                 \
		*at = value;                                                                       \
	}                                                                                          \
	CHANGE(__tsan_atomic##bits##_exchange, type, value)                                        \
	CHANGE(__tsan_atomic##bits##_fetch_add, type, before + value)                              \
	CHANGE(__tsan_atomic##bits##_fetch_and, type, (before & value))                            \
	int __tsan_atomic##bits##_compare_exchange_strong(volatile type *at, type *expected,       \
	                                                  type value, int order, int failed)       \
	{                                                                                          \
		type before;                                                                       \
                                                                                                   \
		(void)order;                                                                       \
		(void)failed;                                                                      \
		machine_access(at, sizeof(type), true, true);                                      \
		before = *at;                                                                      \
		if (before == *expected) {                                                         \
			*at = value;                                                               \
			return 1;                                                                  \
		}                                                                                  \
		*expected = before;                                                                \
		return 0;                                                                          \
	}
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)
