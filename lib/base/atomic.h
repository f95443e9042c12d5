/* SPDX-License-Identifier: MIT */
/*
 * All atomic accesses of the project. Each function has its memory order in its name, so that the
 * order can be seen where the access is made. There are no free-standing fences, because
 * ThreadSanitizer does not understand them. seq_cst is used only where each of two threads stores a
 * word and then loads that of the other.
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
 * Runs before each atomic access. It is nothing, except in the simulation, which switches threads
 * there.
 */
#ifndef ATOMIC_STEP
#define ATOMIC_STEP() ((void)0)
#endif
static inline void atomic_step(void)
{
	ATOMIC_STEP();
}

/*
 * Each of these macros defines one function: ATOMIC_LOAD(u64, uint64_t, acquire) defines
 * u64_load_acquire(). A compare-and-swap (CAS) that fails loads the word into *expected, with the
 * order `failure`. An ATOMIC_CHANGE returns the word as it was before.
 */
#define ATOMIC_LOAD(kind, type, order)                                                             \
	static inline type kind##_load_##order(const atomic_##kind *word)                          \
	{                                                                                          \
		atomic_step();                                                                     \
		return atomic_load_explicit(word, memory_order_##order);                           \
	}
#define ATOMIC_STORE(kind, type, order)                                                            \
	static inline void kind##_store_##order(atomic_##kind *word, type value)                   \
	{                                                                                          \
		atomic_step();                                                                     \
		atomic_store_explicit(word, value, memory_order_##order);                          \
	}
#define ATOMIC_CAS(kind, type, order, failure)                                                     \
	static inline bool kind##_cas_##order(atomic_##kind *word, type *expected, type value)     \
	{                                                                                          \
		atomic_step();                                                                     \
		return atomic_compare_exchange_strong_explicit(                                    \
			word, expected, value, memory_order_##order, memory_order_##failure);      \
	}
#define ATOMIC_CHANGE(kind, type, change, order)                                                   \
	static inline type kind##_##change##_##order(atomic_##kind *word, type value)              \
	{                                                                                          \
		atomic_step();                                                                     \
		return atomic_##change##_explicit(word, value, memory_order_##order);              \
	}

ATOMIC_LOAD(u64, uint64_t, relaxed)
ATOMIC_LOAD(u64, uint64_t, acquire)
ATOMIC_LOAD(u64, uint64_t, seq_cst)
ATOMIC_STORE(u64, uint64_t, relaxed)
ATOMIC_STORE(u64, uint64_t, release)
ATOMIC_STORE(u64, uint64_t, seq_cst)
ATOMIC_CAS(u64, uint64_t, relaxed, relaxed)
ATOMIC_CAS(u64, uint64_t, acquire, acquire)
ATOMIC_CAS(u64, uint64_t, release, relaxed)
ATOMIC_CAS(u64, uint64_t, acq_rel, acquire)
ATOMIC_CAS(u64, uint64_t, seq_cst, seq_cst)
ATOMIC_CHANGE(u64, uint64_t, exchange, release)
ATOMIC_CHANGE(u64, uint64_t, exchange, seq_cst)
ATOMIC_CHANGE(u64, uint64_t, fetch_or, seq_cst) /* x86: `lock or`, if the result is unused */
ATOMIC_CHANGE(u64, uint64_t, fetch_add, relaxed)
ATOMIC_CHANGE(u64, uint64_t, fetch_add, seq_cst)

ATOMIC_LOAD(u32, uint32_t, relaxed)
ATOMIC_LOAD(u32, uint32_t, acquire)
ATOMIC_LOAD(u32, uint32_t, seq_cst)
ATOMIC_STORE(u32, uint32_t, relaxed)
ATOMIC_STORE(u32, uint32_t, release)
ATOMIC_STORE(u32, uint32_t, seq_cst)
ATOMIC_CAS(u32, uint32_t, acquire, acquire)
ATOMIC_CHANGE(u32, uint32_t, exchange, relaxed)
ATOMIC_CHANGE(u32, uint32_t, fetch_add, relaxed)
ATOMIC_CHANGE(u32, uint32_t, fetch_add, release)
ATOMIC_CHANGE(u32, uint32_t, fetch_add, acq_rel)
ATOMIC_CHANGE(u32, uint32_t, fetch_add, seq_cst)

ATOMIC_LOAD(ptr, void *, relaxed)
ATOMIC_LOAD(ptr, void *, acquire)
ATOMIC_STORE(ptr, void *, relaxed)
ATOMIC_STORE(ptr, void *, release)
ATOMIC_CAS(ptr, void *, relaxed, relaxed)
ATOMIC_CAS(ptr, void *, acq_rel, acquire)
ATOMIC_CHANGE(ptr, void *, exchange, acq_rel)

/*
 * A pair is two words in 16 aligned bytes that are changed together, but loaded one after the
 * other. So a pair that was loaded can be half old, and nobody can rely on it before a
 * compare-and-swap of both words has succeeded. On AArch64 without LSE a swap that fails proves
 * nothing, for the same reason.
 *
 * The __sync builtin becomes instructions in place, or libgcc's outline atomics on AArch64. The
 * __atomic one would call libatomic, which may take a lock.
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
#if defined(ATOMIC_UNSEEN) && !defined(SIMULATION_REDIRECT_ATOMICS_H)
#include <sanitizer/tsan_interface.h>

/*
 * Swaps the pair without ThreadSanitizer seeing it. That tool would do it by plain stores under a
 * lock of its own, and would then take an access to one of the words for a data race. So
 * pair_cas_told() tells it which order the swap makes.
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
 * Changes two words to `low_after` and `high_after` by one compare-and-swap, if they are `low` and
 * `high`. Returns false and stores nothing if they are not.
 */
static inline bool pair_cas_acq_rel(void *words, uint64_t low, uint64_t high, uint64_t low_after,
                                    uint64_t high_after)
{
	unsigned __int128 before = (unsigned __int128)high << 64 | low;
	unsigned __int128 after = (unsigned __int128)high_after << 64 | low_after;

	atomic_step();
	return ATOMIC_PAIR_CAS(words, before, after, memory_order_acq_rel);
}

/*
 * Adds to a counter that only one thread writes, so a load and a store are enough. A locked
 * addition would be slower.
 */
static inline void u64_count(atomic_u64 *counter, uint64_t more)
{
	u64_store_relaxed(counter, u64_load_relaxed(counter) + more);
}

/*
 * Raises a word to `least`, if it is lower. The access is relaxed, so whoever wants to publish
 * something by it needs a release afterwards.
 */
static inline void u64_raise(atomic_u64 *word, uint64_t least)
{
	uint64_t before = u64_load_relaxed(word);

	while (before < least && !u64_cas_relaxed(word, &before, least)) {
	}
}

/*
 * Tells the processor that this thread spins, so that it uses less power and leaves more to the
 * other thread of its core.
 */
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
