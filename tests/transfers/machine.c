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

#define PLAIN(bytes)                                                                               \
	void __tsan_read##bytes(const void *at);                                                   \
	void __tsan_write##bytes(const void *at);                                                  \
	void __tsan_unaligned_read##bytes(const void *at);                                         \
	void __tsan_unaligned_write##bytes(const void *at);                                        \
	void __tsan_read##bytes(const void *at)                                                    \
	{                                                                                          \
		machine_access(at, bytes, false, false);                                           \
	}                                                                                          \
	void __tsan_write##bytes(const void *at)                                                   \
	{                                                                                          \
		machine_access(at, bytes, true, false);                                            \
	}                                                                                          \
	void __tsan_unaligned_read##bytes(const void *at)                                          \
	{                                                                                          \
		machine_access(at, bytes, false, false);                                           \
	}                                                                                          \
	void __tsan_unaligned_write##bytes(const void *at)                                         \
	{                                                                                          \
		machine_access(at, bytes, true, false);                                            \
	}
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

/* A sequentially consistent store is a locked exchange on x86-64; every change of a word is. */
#define ATOMIC(bits, type)                                                                         \
	type __tsan_atomic##bits##_load(const volatile type *at, int order);                       \
	void __tsan_atomic##bits##_store(volatile type *at, type value, int order);                \
	type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order);             \
	type __tsan_atomic##bits##_fetch_add(volatile type *at, type value, int order);            \
	type __tsan_atomic##bits##_fetch_and(volatile type *at, type value, int order);            \
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
	type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order)              \
	{                                                                                          \
		type before;                                                                       \
                                                                                                   \
		(void)order;                                                                       \
		machine_access(at, sizeof(type), true, true);                                      \
		before = *at;                                                                      \
		*at = value;                                                                       \
		return before;                                                                     \
	}                                                                                          \
	type __tsan_atomic##bits##_fetch_add(volatile type *at, type value, int order)             \
	{                                                                                          \
		type before;                                                                       \
                                                                                                   \
		(void)order;                                                                       \
		machine_access(at, sizeof(type), true, true);                                      \
		before = *at;                                                                      \
		*at = before + value;                                                              \
		return before;                                                                     \
	}                                                                                          \
	type __tsan_atomic##bits##_fetch_and(volatile type *at, type value, int order)             \
	{                                                                                          \
		type before;                                                                       \
                                                                                                   \
		(void)order;                                                                       \
		machine_access(at, sizeof(type), true, true);                                      \
		before = *at;                                                                      \
		*at = before & value;                                                              \
		return before;                                                                     \
	}                                                                                          \
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

void __tsan_init(void);
void __tsan_func_entry(const void *caller);
void __tsan_func_exit(void);
void __tsan_read_range(const void *at, size_t bytes);
void __tsan_write_range(const void *at, size_t bytes);

void __tsan_init(void)
{
}

void __tsan_func_entry(const void *caller)
{
	(void)caller;
}

void __tsan_func_exit(void)
{
}

void __tsan_read_range(const void *at, size_t bytes)
{
	machine_access(at, bytes, false, false);
}

void __tsan_write_range(const void *at, size_t bytes)
{
	machine_access(at, bytes, true, false);
}

/* Newer compilers' names for copying and filling. */
void *__tsan_memcpy(void *to, const void *from, size_t bytes);
void *__tsan_memmove(void *to, const void *from, size_t bytes);
void *__tsan_memset(void *to, int byte, size_t bytes);

void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
	machine_access(from, bytes, false, false);
	machine_access(to, bytes, true, false);
	return memcpy(to, from, bytes);
}

void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
	machine_access(from, bytes, false, false);
	machine_access(to, bytes, true, false);
	return memmove(to, from, bytes);
}

void *__tsan_memset(void *to, int byte, size_t bytes)
{
	machine_access(to, bytes, true, false);
	return memset(to, byte, bytes);
}
