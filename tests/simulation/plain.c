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
#define TABLE_BITS 16 /* four of them say which granule of a cache line */
#define STACK_NEAR_BYTES ((uintptr_t)1 << 20)
#define FREED INT32_MAX /* the epoch of the write that memory was freed by */
#define PC_TEXT_BYTES 128

struct granule {
	uint64_t last; /* the last access to it, as last_of() puts it; 0: none */
	/* The last write. Epoch 0, of this and of the reads: none. */
	int32_t write_epoch;
	uint8_t write_mask, writer;
	const void *write_pc;
	/* Each thread's last read. */
	int32_t read_epochs[MEMORY_THREADS];
	uint8_t read_masks[MEMORY_THREADS];
	const void *read_pcs[MEMORY_THREADS];
};

extern const char __executable_start[], _end[];

static struct granule granules[GRANULES_MAX];
static uintptr_t bases[GRANULES_MAX]; /* of the granules */
static unsigned granules_count;
static struct {
	uintptr_t base;
	uint32_t run, index;
} table[1 << TABLE_BITS]; /* of granules of this run, by address */
static uint32_t run;
static const int *errno_address; /* the same for all actors */

static struct {
	uintptr_t base;
	size_t bytes;
} freed[FREED_MAX]; /* a ring */
static unsigned freed_count;

void plain_begin(void)
{
	run++;
	granules_count = 0;
	errno_address = &errno;
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

static struct granule *granule_make(uintptr_t base)
{
	unsigned index = granules_count++;

	if (index == GRANULES_MAX)
		report_failure("too much plain memory for the simulation");
	memset(&granules[index], 0, sizeof(granules[index]));
	bases[index] = base;
	if (plain_is_freed(base))
		report_failure("plain memory is used that was freed, after %s:%d",
		               simulation_place.file, simulation_place.line);
	return &granules[index];
}

/* Neighbours in memory are neighbours in the table. */
static struct granule *granule_of(uintptr_t base)
{
	uint32_t line = (uint32_t)(base / 64) * 0x9e3779b1u >> (36 - TABLE_BITS);
	uint32_t at = line << 4 | (base / 4 & 15);

	for (; table[at].run == run; at = (at + 1) % (1 << TABLE_BITS))
		if (table[at].base == base)
			return &granules[table[at].index];
	table[at].run = run;
	table[at].base = base;
	table[at].index = granules_count;
	return granule_make(base);
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

static _Noreturn void fail(const char *what, const void *pc, const void *pc_before)
{
	char here[PC_TEXT_BYTES], there[PC_TEXT_BYTES];

	report_failure("%s: %s races with an access at %s", pc_text(pc, here), what,
	               pc_text(pc_before, there));
}

static void granule_check_write(const struct granule *granule, uint8_t mask, const char *what,
                                const void *pc)
{
	if (granule->write_epoch > memory_known()->epochs[granule->writer] &&
	    (granule->write_mask & mask) != 0)
		fail(what, pc, granule->write_pc);
}

static void granule_check_reads(const struct granule *granule, uint8_t mask, const void *pc)
{
	if (view_has(memory_known(), granule->read_epochs))
		return;
	for (unsigned i = 0; i < MEMORY_THREADS; i++)
		if (granule->read_epochs[i] > memory_known()->epochs[i] &&
		    (granule->read_masks[i] & mask) != 0)
			fail("a write", pc, granule->read_pcs[i]);
}

static uint64_t last_of(unsigned self, int32_t epoch, uint8_t mask, bool write)
{
	return (uint64_t)(uint32_t)epoch << 32 | self << 16 | (uint64_t)mask << 8 | (write ? 2 : 1);
}

static void granule_access(uintptr_t base, uint8_t mask, bool write, const void *pc)
{
	unsigned self = scheduler_self();
	int32_t epoch = memory_known()->epochs[self];
	uint64_t last = last_of(self, epoch, mask, write);
	struct granule *granule = granule_of(base);

	/* The same again, with none in between: there is nothing new to check or to note. */
	if (granule->last == last)
		return;
	granule_check_write(granule, mask, write ? "a write" : "a read", pc);
	if (write) {
		granule_check_reads(granule, mask, pc);
		granule->write_epoch = epoch;
		granule->write_mask = mask;
		granule->writer = (uint8_t)self;
		granule->write_pc = pc;
	} else {
		granule->read_epochs[self] = epoch;
		granule->read_masks[self] = mask;
		granule->read_pcs[self] = pc;
	}
	granule->last = last;
}

/* ---- memory that comes and goes ---- */

void plain_allocated(const void *base, size_t bytes)
{
	for (unsigned i = 0; i < FREED_MAX; i++)
		if (freed[i].base - (uintptr_t)base < bytes ||
		    (uintptr_t)base - freed[i].base < freed[i].bytes)
			freed[i].bytes = 0;
	for (unsigned i = 0; i < granules_count; i++)
		if (bases[i] - (uintptr_t)base < bytes)
			memset(&granules[i], 0, sizeof(granules[i]));
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
		if (bases[i] - (uintptr_t)base < bytes && granules[i].write_epoch != FREED) {
			granule_access(bases[i], 15, true, pc);
			granules[i].write_epoch = FREED;
			granules[i].last = 0;
		}
}

/* ---- what the compiler calls ---- */

/* Not under another sanitizer, whose calls it makes instead. */
#ifndef __SANITIZE_ADDRESS__

static bool is_watched(uintptr_t at)
{
	return memory.mode == MEMORY_C11 && memory.peeking == 0 &&
	       at - (uintptr_t)__executable_start >= (uintptr_t)(_end - __executable_start) &&
	       at - (uintptr_t)__builtin_frame_address(0) + STACK_NEAR_BYTES >=
	               2 * STACK_NEAR_BYTES &&
	       at != (uintptr_t)errno_address;
}

static inline void plain_access(const void *address, size_t bytes, bool write, const void *pc)
{
	uintptr_t at = (uintptr_t)address, end = at + bytes;

	if (!is_watched(at))
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
