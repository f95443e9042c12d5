/* SPDX-License-Identifier: MIT */
/*
 * Declares every atomic access of the core, with the memory order in its name. Of the core, only
 * this file includes stdatomic.h.
 *
 * There are no free-standing fences: ThreadSanitizer does not see them. seq_cst is only for
 * store-then-load: two threads each publish one word and then read the word of the other thread.
 */
#ifndef TIMERHUB_ATOMIC_H
#define TIMERHUB_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef _Atomic(uint32_t) atomic_u32;
typedef _Atomic(uint64_t) atomic_u64;
typedef _Atomic(void *) atomic_ptr;

/*
 * Runs before each atomic access. Does nothing, but a simulation may define it to switch threads.
 */
#ifndef ATOMIC_STEP
#define ATOMIC_STEP() ((void)0)
#endif
static inline void atomic_step(void)
{
	ATOMIC_STEP();
}

static inline uint64_t u64_load_relaxed(const atomic_u64 *word)
{
	atomic_step();
	return atomic_load_explicit(word, memory_order_relaxed);
}

static inline uint64_t u64_load_acquire(const atomic_u64 *word)
{
	atomic_step();
	return atomic_load_explicit(word, memory_order_acquire);
}

static inline uint64_t u64_load_seq_cst(const atomic_u64 *word)
{
	atomic_step();
	return atomic_load_explicit(word, memory_order_seq_cst);
}

static inline void u64_store_relaxed(atomic_u64 *word, uint64_t value)
{
	atomic_step();
	atomic_store_explicit(word, value, memory_order_relaxed);
}

static inline void u64_store_release(atomic_u64 *word, uint64_t value)
{
	atomic_step();
	atomic_store_explicit(word, value, memory_order_release);
}

static inline void u64_store_seq_cst(atomic_u64 *word, uint64_t value)
{
	atomic_step();
	atomic_store_explicit(word, value, memory_order_seq_cst);
}

static inline bool u64_cas_relaxed(atomic_u64 *word, uint64_t *expected, uint64_t value)
{
	atomic_step();
	return atomic_compare_exchange_strong_explicit(word, expected, value, memory_order_relaxed,
	                                               memory_order_relaxed);
}

static inline bool u64_cas_acquire(atomic_u64 *word, uint64_t *expected, uint64_t value)
{
	atomic_step();
	return atomic_compare_exchange_strong_explicit(word, expected, value, memory_order_acquire,
	                                               memory_order_acquire);
}

static inline bool u64_cas_release(atomic_u64 *word, uint64_t *expected, uint64_t value)
{
	atomic_step();
	return atomic_compare_exchange_strong_explicit(word, expected, value, memory_order_release,
	                                               memory_order_relaxed);
}

static inline bool u64_cas_acq_rel(atomic_u64 *word, uint64_t *expected, uint64_t value)
{
	atomic_step();
	return atomic_compare_exchange_strong_explicit(word, expected, value, memory_order_acq_rel,
	                                               memory_order_acquire);
}

static inline bool u64_cas_seq_cst(atomic_u64 *word, uint64_t *expected, uint64_t value)
{
	atomic_step();
	return atomic_compare_exchange_strong_explicit(word, expected, value, memory_order_seq_cst,
	                                               memory_order_seq_cst);
}

static inline uint64_t u64_exchange_release(atomic_u64 *word, uint64_t value)
{
	atomic_step();
	return atomic_exchange_explicit(word, value, memory_order_release);
}

static inline uint64_t u64_fetch_add_relaxed(atomic_u64 *word, uint64_t value)
{
	atomic_step();
	return atomic_fetch_add_explicit(word, value, memory_order_relaxed);
}

static inline uint64_t u64_fetch_add_seq_cst(atomic_u64 *word, uint64_t value)
{
	atomic_step();
	return atomic_fetch_add_explicit(word, value, memory_order_seq_cst);
}

/*
 * A pair is two words in 16 aligned bytes. The words are loaded one after the other, and changed
 * together by pair_cas_acq_rel(). The two loads may be of different changes, so the result is a
 * guess until a compare-and-swap of both words succeeds. A compare-and-swap that fails proves
 * nothing about either word: on AArch64 without LSE it too may compare words of different changes.
 *
 * gcc and clang expand the __sync builtin in place, or on AArch64 by the outline atomics of libgcc.
 * The __atomic builtin of 16 bytes would call libatomic.
 */
#ifndef ATOMIC_PAIR_CAS
typedef unsigned __int128 __attribute__((may_alias)) atomic_pair;
#define ATOMIC_PAIR_CAS(words, before, after, order)                                               \
	__sync_bool_compare_and_swap((atomic_pair *)(words), before, after)
#endif

#if defined(__clang__)
#if __has_feature(thread_sanitizer)
#define ATOMIC_UNSEEN __attribute__((noinline, unused, disable_sanitizer_instrumentation))
#endif
#elif defined(__SANITIZE_THREAD__)
#define ATOMIC_UNSEEN __attribute__((noinline, unused, no_sanitize("thread")))
#endif
#if defined(ATOMIC_UNSEEN) && !defined(SIMULATION_HOOKS_H)
#include <sanitizer/tsan_interface.h>

/*
 * ThreadSanitizer makes a change of 16 bytes by plain stores under its own lock. A load or a change
 * of one word could then see half of the change. So this function hides the change from
 * ThreadSanitizer, and pair_cas_told() reports the order that the change establishes.
 */
static ATOMIC_UNSEEN bool pair_cas_unseen(void *words, unsigned __int128 before,
                                          unsigned __int128 after)
{
	return __sync_bool_compare_and_swap((atomic_pair *)words, before, after);
}

static inline bool pair_cas_told(void *words, unsigned __int128 before, unsigned __int128 after)
{
	bool done;

	__tsan_release(words);
	__tsan_release((uint64_t *)words + 1);
	done = pair_cas_unseen(words, before, after);
	__tsan_acquire(words);
	__tsan_acquire((uint64_t *)words + 1);
	return done;
}

#undef ATOMIC_PAIR_CAS
#define ATOMIC_PAIR_CAS(words, before, after, order) pair_cas_told(words, before, after)
#endif

/*
 * If the words are `low` and `high`, store `low_after` and `high_after`. Otherwise returns false.
 */
static inline bool pair_cas_acq_rel(void *words, uint64_t low, uint64_t high, uint64_t low_after,
                                    uint64_t high_after)
{
	unsigned __int128 before = (unsigned __int128)high << 64 | low;
	unsigned __int128 after = (unsigned __int128)high_after << 64 | low_after;

	atomic_step();
	return ATOMIC_PAIR_CAS(words, before, after, memory_order_acq_rel);
}

/* Add to a counter with one writer. It needs no locked instruction; readers only want a number. */
static inline void u64_count(atomic_u64 *counter, uint64_t more)
{
	u64_store_relaxed(counter, u64_load_relaxed(counter) + more);
}

static inline uint32_t u32_load_relaxed(const atomic_u32 *word)
{
	atomic_step();
	return atomic_load_explicit(word, memory_order_relaxed);
}

static inline uint32_t u32_load_acquire(const atomic_u32 *word)
{
	atomic_step();
	return atomic_load_explicit(word, memory_order_acquire);
}

static inline uint32_t u32_load_seq_cst(const atomic_u32 *word)
{
	atomic_step();
	return atomic_load_explicit(word, memory_order_seq_cst);
}

static inline void u32_store_relaxed(atomic_u32 *word, uint32_t value)
{
	atomic_step();
	atomic_store_explicit(word, value, memory_order_relaxed);
}

static inline void u32_store_release(atomic_u32 *word, uint32_t value)
{
	atomic_step();
	atomic_store_explicit(word, value, memory_order_release);
}

static inline void u32_store_seq_cst(atomic_u32 *word, uint32_t value)
{
	atomic_step();
	atomic_store_explicit(word, value, memory_order_seq_cst);
}

static inline bool u32_cas_relaxed(atomic_u32 *word, uint32_t *expected, uint32_t value)
{
	atomic_step();
	return atomic_compare_exchange_strong_explicit(word, expected, value, memory_order_relaxed,
	                                               memory_order_relaxed);
}

static inline bool u32_cas_acquire(atomic_u32 *word, uint32_t *expected, uint32_t value)
{
	atomic_step();
	return atomic_compare_exchange_strong_explicit(word, expected, value, memory_order_acquire,
	                                               memory_order_acquire);
}

static inline uint32_t u32_fetch_add_relaxed(atomic_u32 *word, uint32_t value)
{
	atomic_step();
	return atomic_fetch_add_explicit(word, value, memory_order_relaxed);
}

static inline uint32_t u32_fetch_add_release(atomic_u32 *word, uint32_t value)
{
	atomic_step();
	return atomic_fetch_add_explicit(word, value, memory_order_release);
}

static inline uint32_t u32_fetch_add_acq_rel(atomic_u32 *word, uint32_t value)
{
	atomic_step();
	return atomic_fetch_add_explicit(word, value, memory_order_acq_rel);
}

static inline uint32_t u32_fetch_add_seq_cst(atomic_u32 *word, uint32_t value)
{
	atomic_step();
	return atomic_fetch_add_explicit(word, value, memory_order_seq_cst);
}

static inline uint32_t u32_exchange_relaxed(atomic_u32 *word, uint32_t value)
{
	atomic_step();
	return atomic_exchange_explicit(word, value, memory_order_relaxed);
}

static inline void *ptr_load_relaxed(const atomic_ptr *word)
{
	atomic_step();
	return atomic_load_explicit(word, memory_order_relaxed);
}

static inline void *ptr_load_acquire(const atomic_ptr *word)
{
	atomic_step();
	return atomic_load_explicit(word, memory_order_acquire);
}

static inline void ptr_store_relaxed(atomic_ptr *word, void *value)
{
	atomic_step();
	atomic_store_explicit(word, value, memory_order_relaxed);
}

static inline void ptr_store_release(atomic_ptr *word, void *value)
{
	atomic_step();
	atomic_store_explicit(word, value, memory_order_release);
}

static inline void *ptr_exchange_acq_rel(atomic_ptr *word, void *value)
{
	atomic_step();
	return atomic_exchange_explicit(word, value, memory_order_acq_rel);
}

static inline bool ptr_cas_relaxed(atomic_ptr *word, void **expected, void *value)
{
	atomic_step();
	return atomic_compare_exchange_strong_explicit(word, expected, value, memory_order_relaxed,
	                                               memory_order_relaxed);
}

static inline bool ptr_cas_acquire(atomic_ptr *word, void **expected, void *value)
{
	atomic_step();
	return atomic_compare_exchange_strong_explicit(word, expected, value, memory_order_acquire,
	                                               memory_order_acquire);
}

static inline bool ptr_cas_acq_rel(atomic_ptr *word, void **expected, void *value)
{
	atomic_step();
	return atomic_compare_exchange_strong_explicit(word, expected, value, memory_order_acq_rel,
	                                               memory_order_acquire);
}

/* Tell the processor that this is a spin loop. */
static inline void cpu_relax(void)
{
#if defined(CPU_RELAX)
	CPU_RELAX();
#elif defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

#endif
