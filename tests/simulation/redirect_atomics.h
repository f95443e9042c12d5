/* SPDX-License-Identifier: MIT */
/*
 * Redirects the atomic accesses of lib/ to memory_models.c, with the file and line of each, and
 * lets other actors run before. It also decides which thread and which processor the library
 * believes to run on. It is included before everything else in each file of lib/, and is the only
 * change that the simulation makes to that file.
 */
#ifndef SIMULATION_REDIRECT_ATOMICS_H
#define SIMULATION_REDIRECT_ATOMICS_H

/* before the first system header; lib/ defines it only after this one */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "raw_memory.h"
#include "source_location.h"

/* of the current actor's next access */
extern struct source_location simulation_line;

/* until another actor runs */
extern int simulation_steps_left;
void simulation_switch(void);

enum simulation_change { SIMULATION_EXCHANGE, SIMULATION_ADD, SIMULATION_OR };

/* straight to the machine's memory: mode sc, nothing weakened */
extern bool simulation_direct;

uint64_t memory_load(const volatile void *word, unsigned bytes, int order);
void memory_store(volatile void *word, unsigned bytes, uint64_t value, int order);
uint64_t memory_change(volatile void *word, unsigned bytes, enum simulation_change change,
                       uint64_t operand, int order);
bool memory_cas(volatile void *word, unsigned bytes, void *expected, uint64_t value, int order,
                int order_failed);
bool memory_cas_pair(volatile void *words, unsigned __int128 before, unsigned __int128 after,
                     int order);

void simulation_at_called(const char *file, int line);
void simulation_step_called(void);

static inline uint64_t simulation_changed(uint64_t before, enum simulation_change change,
                                          uint64_t operand)
{
	switch (change) {
	case SIMULATION_EXCHANGE:
		break;
	case SIMULATION_ADD:
		return before + operand;
	case SIMULATION_OR:
		return before | operand;
	}
	return operand;
}

/*
 * lib/'s plain accesses are reported; the simulation's must not be, so its functions are not inline
 */
#ifdef SIMULATION_WATCHED
#define simulation_at simulation_at_called
#define simulation_step simulation_step_called
#define simulation_load memory_load
#define simulation_store memory_store
#define simulation_change memory_change
#define simulation_cas memory_cas
#define simulation_cas_pair memory_cas_pair
#else

static inline void simulation_at(const char *file, int line)
{
	simulation_line.file = file;
	simulation_line.line = line;
}

static inline void simulation_step(void)
{
	if (--simulation_steps_left < 0)
		simulation_switch();
}

static inline uint64_t simulation_load(const volatile void *word, unsigned bytes, int order)
{
	return simulation_direct ? word_load(word, bytes) : memory_load(word, bytes, order);
}

static inline void simulation_store(volatile void *word, unsigned bytes, uint64_t value, int order)
{
	if (simulation_direct)
		word_store(word, bytes, value);
	else
		memory_store(word, bytes, value, order);
}

static inline uint64_t simulation_change(volatile void *word, unsigned bytes,
                                         enum simulation_change change, uint64_t operand, int order)
{
	uint64_t before;

	if (!simulation_direct)
		return memory_change(word, bytes, change, operand, order);
	before = word_load(word, bytes);
	word_store(word, bytes, simulation_changed(before, change, operand));
	return before;
}

static inline bool simulation_cas(volatile void *word, unsigned bytes, void *expected,
                                  uint64_t value, int order, int order_failed)
{
	uint64_t before;

	if (!simulation_direct)
		return memory_cas(word, bytes, expected, value, order, order_failed);
	before = word_load(word, bytes);
	if (before == word_load(expected, bytes)) {
		word_store(word, bytes, value);
		return true;
	}
	word_store(expected, bytes, before);
	return false;
}

static inline bool simulation_cas_pair(volatile void *words, unsigned __int128 before,
                                       unsigned __int128 after, int order)
{
	if (!simulation_direct)
		return memory_cas_pair(words, before, after, order);
	if (pair_load(words) != before)
		return false;
	pair_store(words, after);
	return true;
}

#endif

/* 64 bits to the word's type, and back */
#define simulation_as(word, bits)                                                                  \
	_Generic(*(word), void * : (void *)(uintptr_t)(bits), uint32_t : (uint32_t)(bits), default \
	         : (bits))
#define simulation_bits(value) ((uint64_t)(uintptr_t)(value))

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_or_explicit
#undef atomic_compare_exchange_strong_explicit
#define atomic_load_explicit(word, order)                                                          \
	simulation_as(word, simulation_load(word, sizeof(*(word)), order))
#define atomic_store_explicit(word, value, order)                                                  \
	simulation_store(word, sizeof(*(word)), simulation_bits(value), order)
#define simulation_change_as(word, change, value, order)                                           \
	simulation_as(word, simulation_change(word, sizeof(*(word)), change,                       \
	                                      simulation_bits(value), order))
#define atomic_exchange_explicit(word, value, order)                                               \
	simulation_change_as(word, SIMULATION_EXCHANGE, value, order)
#define atomic_fetch_add_explicit(word, value, order)                                              \
	simulation_change_as(word, SIMULATION_ADD, value, order)
#define atomic_fetch_or_explicit(word, value, order)                                               \
	simulation_change_as(word, SIMULATION_OR, value, order)
#define atomic_compare_exchange_strong_explicit(word, expected, value, order, order_failed)        \
	simulation_cas(word, sizeof(*(word)), expected, simulation_bits(value), order, order_failed)

/* Defined in scheduler.c. */
void simulation_relax(void); /* replaces the processor's pause instruction */
void *simulation_thread(void);
#include "loop_header.h"

#define ATOMIC_STEP() simulation_step()
#define ATOMIC_PAIR_CAS(words, before, after, order)                                               \
	simulation_cas_pair(words, before, after, order)
#define CPU_RELAX() simulation_relax()
#define CPU_HAS_RSEQ 0

#include "../../lib/base/atomic.h"

/*
 * One for each function of lib/base/atomic.h, which tools/run-orders checks: stores the line, calls
 * it.
 */
#define HERE simulation_at(__FILE__, __LINE__)
#define u64_load_relaxed(word) (HERE, u64_load_relaxed(word))
#define u64_load_acquire(word) (HERE, u64_load_acquire(word))
#define u64_load_seq_cst(word) (HERE, u64_load_seq_cst(word))
#define u64_store_relaxed(word, value) (HERE, u64_store_relaxed(word, value))
#define u64_store_release(word, value) (HERE, u64_store_release(word, value))
#define u64_store_seq_cst(word, value) (HERE, u64_store_seq_cst(word, value))
#define u64_cas_relaxed(word, expected, value) (HERE, u64_cas_relaxed(word, expected, value))
#define u64_cas_acquire(word, expected, value) (HERE, u64_cas_acquire(word, expected, value))
#define u64_cas_acq_rel(word, expected, value) (HERE, u64_cas_acq_rel(word, expected, value))
#define u64_cas_seq_cst(word, expected, value) (HERE, u64_cas_seq_cst(word, expected, value))
#define u64_exchange_release(word, value) (HERE, u64_exchange_release(word, value))
#define u64_exchange_seq_cst(word, value) (HERE, u64_exchange_seq_cst(word, value))
#define u64_fetch_or_seq_cst(word, value) (HERE, u64_fetch_or_seq_cst(word, value))
#define u64_fetch_add_relaxed(word, value) (HERE, u64_fetch_add_relaxed(word, value))
#define u64_fetch_add_seq_cst(word, value) (HERE, u64_fetch_add_seq_cst(word, value))
#define u64_count(word, value) (HERE, u64_count(word, value))
#define u64_raise(word, least) (HERE, u64_raise(word, least))
#define pair_cas_acq_rel(words, low, high, low_after, high_after)                                  \
	(HERE, pair_cas_acq_rel(words, low, high, low_after, high_after))
#define u32_load_relaxed(word) (HERE, u32_load_relaxed(word))
#define u32_load_acquire(word) (HERE, u32_load_acquire(word))
#define u32_load_seq_cst(word) (HERE, u32_load_seq_cst(word))
#define u32_store_relaxed(word, value) (HERE, u32_store_relaxed(word, value))
#define u32_store_release(word, value) (HERE, u32_store_release(word, value))
#define u32_store_seq_cst(word, value) (HERE, u32_store_seq_cst(word, value))
#define u32_cas_acquire(word, expected, value) (HERE, u32_cas_acquire(word, expected, value))
#define u32_fetch_add_acq_rel(word, value) (HERE, u32_fetch_add_acq_rel(word, value))
#define u32_fetch_add_seq_cst(word, value) (HERE, u32_fetch_add_seq_cst(word, value))
#define u32_exchange_relaxed(word, value) (HERE, u32_exchange_relaxed(word, value))
#define ptr_load_relaxed(word) (HERE, ptr_load_relaxed(word))
#define ptr_load_acquire(word) (HERE, ptr_load_acquire(word))
#define ptr_store_release(word, value) (HERE, ptr_store_release(word, value))
#define ptr_exchange_acq_rel(word, value) (HERE, ptr_exchange_acq_rel(word, value))
#define ptr_cas_acq_rel(word, expected, value) (HERE, ptr_cas_acq_rel(word, expected, value))
#define u32_fetch_add_relaxed(word, value) (HERE, u32_fetch_add_relaxed(word, value))
#define ptr_store_relaxed(word, value) (HERE, ptr_store_relaxed(word, value))
#define ptr_cas_relaxed(word, expected, value) (HERE, ptr_cas_relaxed(word, expected, value))
#define u64_cas_release(word, expected, value) (HERE, u64_cas_release(word, expected, value))
#define u32_fetch_add_release(word, value) (HERE, u32_fetch_add_release(word, value))

#endif
