/* SPDX-License-Identifier: MIT */
/*
 * See plain.h. The granule is four bytes, since the compiler may merge neighbouring accesses; a
 * mask says which of the four. A granule keeps its last write and each thread's last read: an
 * older access happens before the last one, or was already found to race.
 *
 * Not watched are stacks, since the library gives no thread the address of another's; static
 * memory, since the library's is atomic and the rest is the simulation's; and errno, which each
 * thread has.
 */
#include "plain.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hooks.h"
#include "memory.h"
#include "report.h"
#include "scheduler.h"

#define GRANULES_MAX 16384
#define FREED_MAX 128
#define TABLE_BITS 16
#define STACK_NEAR_BYTES ((uintptr_t)1 << 20)
#define FREED INT32_MAX /* the epoch of the write that memory was freed by */
#define PC_TEXT_BYTES 128

struct plain_access {
	int32_t epoch; /* 0: none */
	uint8_t mask;
	const void *pc;
};

struct granule {
	uintptr_t base;
	unsigned writer;
	struct plain_access write;
	struct plain_access reads[MEMORY_THREADS];
};

extern const char __executable_start[], _end[];

static struct granule granules[GRANULES_MAX];
static unsigned granules_count;
static struct {
	uint32_t run, index;
} table[1 << TABLE_BITS]; /* of granules of this run, by address */
static uint32_t run;

static struct {
	uintptr_t base;
	size_t bytes;
} freed[FREED_MAX]; /* a ring */
static unsigned freed_count;

void plain_begin(void)
{
	run++;
	granules_count = 0;
	memset(freed, 0, sizeof(freed));
	freed_count = 0;
}

bool plain_is_freed(uintptr_t address)
{
	for (unsigned i = 0; i < FREED_MAX && i < freed_count; i++)
		if (address - freed[i].base < freed[i].bytes)
			return true;
	return false;
}

static struct granule *granule_of(uintptr_t base)
{
	uint32_t at = (uint32_t)(base / 4 * 0x9e3779b1u) >> (32 - TABLE_BITS);
	struct granule *granule;

	for (; table[at].run == run; at = (at + 1) % (1 << TABLE_BITS))
		if (granules[table[at].index].base == base)
			return &granules[table[at].index];
	if (granules_count == GRANULES_MAX)
		report_failure("too much plain memory for the simulation");
	table[at].run = run;
	table[at].index = granules_count;
	granule = &granules[granules_count++];
	memset(granule, 0, sizeof(*granule));
	granule->base = base;
	if (plain_is_freed(base))
		report_failure("plain memory is used that was freed, after %s:%d",
		               simulation_place.file, simulation_place.line);
	return granule;
}

/* The source line of an instruction; or its offset, for addr2line(1). */
static const char *pc_text(const void *pc, char text[PC_TEXT_BYTES])
{
	/* The instruction before the return address. */
	size_t offset = (size_t)((const char *)pc - __executable_start) - 1;
	char command[64];
	FILE *pipe;

	(void)snprintf(text, PC_TEXT_BYTES, "0x%zx", offset);
	(void)snprintf(command, sizeof(command), "addr2line -s -e /proc/%d/exe 0x%zx",
	               (int)getpid(), offset);
	pipe = popen(command, "r");
	if (!pipe)
		return text;
	if (!fgets(text, PC_TEXT_BYTES, pipe))
		(void)snprintf(text, PC_TEXT_BYTES, "0x%zx", offset);
	(void)pclose(pipe);
	text[strcspn(text, " \n")] = '\0';
	return text;
}

static bool races(const struct plain_access *before, unsigned thread, uint8_t mask)
{
	return before->epoch > memory_known()->epochs[thread] && (before->mask & mask) != 0;
}

static _Noreturn void fail(const char *what, const void *pc, const struct plain_access *before)
{
	char here[PC_TEXT_BYTES], there[PC_TEXT_BYTES];

	report_failure("%s: %s races with an access at %s", pc_text(pc, here), what,
	               pc_text(before->pc, there));
}

static void granule_access(uintptr_t base, uint8_t mask, bool write, const void *pc)
{
	unsigned self = scheduler_self();
	struct plain_access access = { memory_known()->epochs[self], mask, pc };
	struct granule *granule = granule_of(base);

	if (races(&granule->write, granule->writer, mask))
		fail(write ? "a write" : "a read", pc, &granule->write);
	if (!write) {
		granule->reads[self] = access;
		return;
	}
	for (unsigned i = 0; i < MEMORY_THREADS; i++)
		if (races(&granule->reads[i], i, mask))
			fail("a write", pc, &granule->reads[i]);
	granule->write = access;
	granule->writer = self;
}

/* ---- memory that comes and goes ---- */

static bool inside(const struct granule *granule, const void *base, size_t bytes)
{
	return granule->base - (uintptr_t)base < bytes;
}

void plain_allocated(const void *base, size_t bytes)
{
	for (unsigned i = 0; i < FREED_MAX; i++)
		if (freed[i].base - (uintptr_t)base < bytes ||
		    (uintptr_t)base - freed[i].base < freed[i].bytes)
			freed[i].bytes = 0;
	for (unsigned i = 0; i < granules_count; i++)
		if (inside(&granules[i], base, bytes))
			granules[i] = (struct granule){ .base = granules[i].base };
}

/* As a write to all of it; from here on each access races with that. */
void plain_freed(const void *base, size_t bytes)
{
	const void *pc = __builtin_return_address(0);

	freed[freed_count % FREED_MAX].base = (uintptr_t)base;
	freed[freed_count++ % FREED_MAX].bytes = bytes;
	if (memory.mode != MEMORY_C11)
		return;
	for (unsigned i = 0; i < granules_count; i++)
		if (inside(&granules[i], base, bytes) && granules[i].write.epoch != FREED) {
			granule_access(granules[i].base, 15, true, pc);
			granules[i].write.epoch = FREED;
		}
}

/* ---- what the compiler calls ---- */

/* Not under another sanitizer, whose calls it makes instead. */
#ifndef __SANITIZE_ADDRESS__

static void plain_access(const void *address, size_t bytes, bool write, const void *pc)
{
	uintptr_t at = (uintptr_t)address, end = at + bytes;

	if (at - (uintptr_t)__executable_start < (uintptr_t)(_end - __executable_start) ||
	    memory.mode != MEMORY_C11 || memory.peeking > 0 || address == &errno ||
	    at - (uintptr_t)&at + STACK_NEAR_BYTES < 2 * STACK_NEAR_BYTES)
		return;
	while (at < end) {
		uintptr_t base = at & ~(uintptr_t)3;
		uintptr_t stop = base + 4 < end ? base + 4 : end;
		unsigned mask = (1u << (stop - base)) - (1u << (at - base));

		granule_access(base, (uint8_t)mask, write, pc);
		at = stop;
	}
}

#define CALLER __builtin_return_address(0)

#define ACCESSES(bytes)                                                                            \
	void __tsan_read##bytes(const void *address);                                              \
	void __tsan_write##bytes(const void *address);                                             \
	void __tsan_unaligned_read##bytes(const void *address);                                    \
	void __tsan_unaligned_write##bytes(const void *address);                                   \
	void __tsan_read##bytes(const void *address)                                               \
	{                                                                                          \
		plain_access(address, bytes, false, CALLER);                                       \
	}                                                                                          \
	void __tsan_write##bytes(const void *address)                                              \
	{                                                                                          \
		plain_access(address, bytes, true, CALLER);                                        \
	}                                                                                          \
	void __tsan_unaligned_read##bytes(const void *address)                                     \
	{                                                                                          \
		plain_access(address, bytes, false, CALLER);                                       \
	}                                                                                          \
	void __tsan_unaligned_write##bytes(const void *address)                                    \
	{                                                                                          \
		plain_access(address, bytes, true, CALLER);                                        \
	}
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_init(void);
void __tsan_func_entry(const void *caller);
void __tsan_func_exit(void);
void __tsan_read_range(const void *address, size_t bytes);
void __tsan_write_range(const void *address, size_t bytes);

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

void __tsan_read_range(const void *address, size_t bytes)
{
	plain_access(address, bytes, false, CALLER);
}

void __tsan_write_range(const void *address, size_t bytes)
{
	plain_access(address, bytes, true, CALLER);
}

/* Newer compilers' names for copying and filling. */
void *__tsan_memcpy(void *to, const void *from, size_t bytes);
void *__tsan_memmove(void *to, const void *from, size_t bytes);
void *__tsan_memset(void *to, int byte, size_t bytes);

void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
	plain_access(from, bytes, false, CALLER);
	plain_access(to, bytes, true, CALLER);
	return memcpy(to, from, bytes);
}

void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
	plain_access(from, bytes, false, CALLER);
	plain_access(to, bytes, true, CALLER);
	return memmove(to, from, bytes);
}

void *__tsan_memset(void *to, int byte, size_t bytes)
{
	plain_access(to, bytes, true, CALLER);
	return memset(to, byte, bytes);
}

#endif
