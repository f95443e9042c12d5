/* SPDX-License-Identifier: MIT */
/*
 * Memory is checked in granules of four bytes, with a mask of the bytes that were accessed, because
 * the compiler merges accesses of neighbours. For each granule the last write and the last read of
 * each thread are kept. Older accesses happened before these, or a race was reported.
 *
 * Only allocated memory is checked. That is enough: no thread gets an address of another's stack,
 * the library's static variables are atomic, and everything else belongs to the simulation.
 */
#include "plain_accesses.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "memory_models.h"
#include "redirect_atomics.h"
#include "report.h"
#include "scheduler.h"

#define GRANULES (PLAIN_BYTES / 4)
#define PAGES (PLAIN_BYTES / PLAIN_PAGE_BYTES)
#define PAGE_GRANULES (GRANULES / PAGES)
#define LINE_GRANULES (PAGE_GRANULES / 64)
#define PC_TEXT_BYTES 128

/* An access is named by the address behind its instruction, minus __executable_start. */
#define PC_BITS 28

struct granule {
	/* 0: never written */
	int32_t write_epoch;
	uint32_t write_mask : 4, write_pc : PC_BITS;
	uint16_t writer;
	uint16_t readers; /* a bit for each thread that read since a write of all four bytes */
	struct {
		int32_t epoch;
		uint32_t mask : 4, pc : PC_BITS;
	} reads[MEMORY_THREADS];
} __attribute__((aligned(64)));

_Alignas(PLAIN_PAGE_BYTES) char plain_memory[PLAIN_BYTES];
static size_t watched_bytes; /* PLAIN_BYTES, or 0 while accesses are not checked */

/* the last access to each granule, as last_of() encodes it; 0 if there was none */
static uint64_t lasts[GRANULES];
static struct granule granules[GRANULES];
static struct page {
	uint64_t lines; /* a bit for each group of 16 granules, set if the group was accessed */
	bool held;      /* true if the page is allocated and not yet freed */
} pages[PAGES];
static size_t pages_used; /* the pages from this index on were never allocated */

extern const char __executable_start[];

/* Forget all accesses to the page. */
static void page_forget(struct page *page)
{
	uint64_t *of_page = &lasts[(size_t)(page - pages) * PAGE_GRANULES];

	for (; page->lines != 0; page->lines &= page->lines - 1)
		memset(&of_page[(unsigned)__builtin_ctzll(page->lines) * LINE_GRANULES], 0,
		       LINE_GRANULES * sizeof(*of_page));
}

void plain_begin(void)
{
	for (size_t i = 0; i < pages_used; i++)
		page_forget(&pages[i]);
	plain_watch(true);
}

void plain_watch(bool watch)
{
	watched_bytes = watch && memory.mode == MEMORY_C11 ? PLAIN_BYTES : 0;
}

static size_t plain_offset(const volatile void *address)
{
	return (uintptr_t)address - (uintptr_t)plain_memory;
}

bool plain_is_freed(const volatile void *address)
{
	size_t at = plain_offset(address);

	return at < PLAIN_BYTES && !pages[at / PLAIN_PAGE_BYTES].held;
}

/* File and line of the instruction before `pc`; without addr2line(1), the address. */
static const char *pc_text(uint32_t pc, char text[PC_TEXT_BYTES])
{
	char command[64];
	FILE *pipe;

	(void)snprintf(text, PC_TEXT_BYTES, "0x%x", pc - 1);
	(void)snprintf(command, sizeof(command), "addr2line -s -e /proc/%d/exe 0x%x", (int)getpid(),
	               pc - 1);
	pipe = popen(command, "r");
	if (!pipe)
		return text;
	if (!fgets(text, PC_TEXT_BYTES, pipe))
		(void)snprintf(text, PC_TEXT_BYTES, "0x%x", pc - 1);
	(void)pclose(pipe);
	text[strcspn(text, " \n")] = '\0';
	return text;
}

static _Noreturn void fail(const char *what, uint32_t pc, uint32_t pc_before)
{
	char here[PC_TEXT_BYTES], there[PC_TEXT_BYTES];

	report_failure("%s: %s races with an access at %s", pc_text(pc, here), what,
	               pc_text(pc_before, there));
}

static void granule_check_write(const struct granule *granule, unsigned mask, const char *what,
                                uint32_t pc)
{
	if (granule->write_epoch > memory_known()->epochs[granule->writer] &&
	    (granule->write_mask & mask) != 0)
		fail(what, pc, granule->write_pc);
}

static void granule_check_reads(const struct granule *granule, unsigned mask, uint32_t pc)
{
	for (unsigned left = granule->readers; left != 0; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);

		if (granule->reads[i].epoch > memory_known()->epochs[i] &&
		    (granule->reads[i].mask & mask) != 0)
			fail("a write", pc, granule->reads[i].pc);
	}
}

static uint64_t last_of(unsigned self, int32_t epoch, unsigned mask, bool write)
{
	return (uint64_t)(uint32_t)epoch << 32 | self << 16 | mask << 8 | (write ? 2 : 1);
}

/* The granule's first access in this run, or since its memory was allocated. */
static void granule_begin(size_t index, uint32_t pc)
{
	struct page *page = &pages[index / PAGE_GRANULES];
	char text[PC_TEXT_BYTES];

	if (!page->held)
		report_failure("%s: memory is used that was freed", pc_text(pc, text));
	page->lines |= UINT64_C(1) << index / LINE_GRANULES % 64;
	granules[index].write_epoch = 0;
	granules[index].readers = 0;
}

static void granule_read(struct granule *granule, unsigned mask, uint32_t pc)
{
	unsigned self = scheduler_self();

	granule_check_write(granule, mask, "a read", pc);
	granule->readers |= (uint16_t)(1u << self);
	granule->reads[self].epoch = memory_known()->epochs[self];
	granule->reads[self].mask = mask & 15;
	granule->reads[self].pc = pc & ((1u << PC_BITS) - 1);
}

static void granule_write(struct granule *granule, unsigned mask, uint32_t pc)
{
	granule_check_write(granule, mask, "a write", pc);
	granule_check_reads(granule, mask, pc);
	granule->write_epoch = memory_known()->epochs[scheduler_self()];
	granule->write_mask = mask & 15;
	granule->write_pc = pc & ((1u << PC_BITS) - 1);
	granule->writer = (uint16_t)scheduler_self();
	/* an access that happens after this write also happens after the reads before it */
	if (mask == 15)
		granule->readers = 0;
}

static inline void granule_access(size_t index, unsigned mask, bool write, const void *address)
{
	unsigned self = scheduler_self();
	uint64_t last = last_of(self, memory_known()->epochs[self], mask, write);
	uint32_t pc = (uint32_t)((const char *)address - __executable_start);

	/* same thread, epoch, mask and kind */
	if (lasts[index] == last)
		return;
	if (lasts[index] == 0)
		granule_begin(index, pc);
	lasts[index] = last;
	if (write)
		granule_write(&granules[index], mask, pc);
	else
		granule_read(&granules[index], mask, pc);
}

/* ---- memory that is allocated and freed ---- */

static void pages_hold(const void *base, size_t bytes, bool held)
{
	for (size_t at = plain_offset(base); bytes > 0 && at < PLAIN_BYTES;
	     at += PLAIN_PAGE_BYTES) {
		size_t page = at / PLAIN_PAGE_BYTES;

		pages[page].held = held;
		page_forget(&pages[page]);
		if (page >= pages_used)
			pages_used = page + 1;
		bytes -= bytes < PLAIN_PAGE_BYTES ? bytes : PLAIN_PAGE_BYTES;
	}
}

void plain_allocated(const void *base, size_t bytes)
{
	pages_hold(base, bytes, true);
}

/* A write to each granule accessed before. */
void plain_freed(const void *base, size_t bytes)
{
	const void *pc = __builtin_return_address(0);
	size_t begin = plain_offset(base) / 4, end = begin + bytes / 4;

	for (size_t page = begin; begin * 4 < watched_bytes && page < end; page += PAGE_GRANULES)
		for (uint64_t left = pages[page / PAGE_GRANULES].lines; left != 0;
		     left &= left - 1) {
			size_t line = page + (unsigned)__builtin_ctzll(left) * LINE_GRANULES;

			for (size_t i = line; i < line + LINE_GRANULES; i++)
				if (lasts[i] != 0)
					granule_access(i, 15, true, pc);
		}
	pages_hold(base, bytes, false);
}

/* ---- the functions that instrumented code calls ---- */

/* not called under AddressSanitizer */
#ifndef __SANITIZE_ADDRESS__

static void plain_access(const void *address, size_t bytes, bool write, const void *pc)
{
	size_t at = plain_offset(address);

	if (at >= watched_bytes)
		return;
	for (size_t end = at + bytes, stop; at < end; at = stop) {
		size_t base = at & ~(size_t)3;

		stop = base + 4 < end ? base + 4 : end;
		granule_access(base / 4, (1u << (stop - base)) - (1u << (at - base)), write, pc);
	}
}

static __attribute__((noinline)) void granules_access(size_t index, size_t count, unsigned mask,
                                                      bool write, const void *pc)
{
	granule_access(index, mask, write, pc);
	for (size_t i = 1; i < count; i++)
		granule_access(index + i, mask, write, pc);
}

/* A power of two, aligned. Most are outside plain_memory, so that comes first. */
static inline void plain_access_aligned(const void *address, size_t bytes, bool write,
                                        const void *pc)
{
	size_t at = plain_offset(address);

	if (at < watched_bytes)
		granules_access(at / 4, bytes / 4, bytes < 4 ? ((1u << bytes) - 1) << at % 4 : 15,
		                write, pc);
}

#define CALLER __builtin_return_address(0)
#define TSAN_ACCESS(address, bytes, write) plain_access(address, bytes, write, CALLER)
#define TSAN_ALIGNED(address, bytes, write) plain_access_aligned(address, bytes, write, CALLER)
#include "tsan_calls.h"

#endif
