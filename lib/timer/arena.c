/* SPDX-License-Identifier: MIT */
/*
 * Implements the arena of arena.h. Each shard has a stack of free slots (R. K. Treiber, "Systems
 * programming: coping with parallelism", 1986). The top of a stack counts how often a slot was
 * taken. The count makes a CAS fail if the top slot was taken and put back after the load (the ABA
 * problem). The link of a free slot also holds the number of slots below it. A thread takes one
 * slot at a time, so a stopped thread holds at most one slot. Only arena_take_list() takes many
 * slots at once.
 *
 * Labels: [free] arena_put → arena_take: carries that the previous user is done with the slot.
 */
#include "timer/arena.h"

#include "base/cpu.h"
#include "base/test_point.h"

/*
 * A fresh slot costs less than a slot of another CPU's stack with fewer than ARENA_STEAL_MIN slots.
 * If the shard has used fewer than ARENA_FEW slots, one slot on the other stack is enough.
 */
#ifndef ARENA_STEAL_MIN
#define ARENA_STEAL_MIN 32
#endif
#ifndef ARENA_FEW
#define ARENA_FEW 512
#endif
/* Read at most this many stacks of other CPUs before taking a slot that was never used. */
#define ARENA_STEAL_LOOKS 15
/*
 * If a stack holds ARENA_KEEP slots, arena_put() uses the stack of the slot's shard. Without this
 * limit, a thread that cancels many timers would collect the free slots of all CPUs on one stack.
 */
#ifndef ARENA_KEEP
#define ARENA_KEEP 256
#endif
#define ARENA_SHARDS_MAX BOARD_SHARDS_MAX
/* The least number of slots in a shard. A hub with few slots has fewer shards. */
#ifndef ARENA_SHARD_SLOTS_MIN
#define ARENA_SHARD_SLOTS_MIN 256
#endif

/* Returns the link of a free slot: the slot below it, and the number of slots below it. */
static uint64_t link_make(uint32_t below, uint32_t depth_below)
{
	return (uint64_t)depth_below << 32 | (uint32_t)(below + 1);
}

static uint32_t link_below(uint64_t link)
{
	return (uint32_t)link - 1; /* for a link of 0 the result is SLOT_NONE */
}

static uint32_t link_depth_below(uint64_t link)
{
	return (uint32_t)(link >> 32);
}

static uint32_t top_slot(uint64_t top)
{
	return (uint32_t)(top & TIMER_SLOT_MASK) - 1;
}

static uint64_t top_make(uint64_t takes, uint32_t slot)
{
	return takes << TIMER_SLOT_BITS | ((slot + 1) & TIMER_SLOT_MASK);
}

static uint64_t top_takes(uint64_t top)
{
	return top >> TIMER_SLOT_BITS;
}

/*
 * Returns the hub's serial number with its 38 bits in reverse order. The first generations of any
 * two hubs are therefore far apart, and a hub rejects the handles of other hubs.
 */
static uint64_t arena_first_generation(void)
{
	static atomic_u64 opened;
	uint64_t serial = u64_fetch_add_relaxed(&opened, 1); /* relaxed: only uniqueness matters */
	uint64_t generation = 0;

	for (unsigned bit = 0; bit < 38; bit++)
		generation |= (serial >> bit & 1) << (37 - bit);
	return generation;
}

static size_t align_up(size_t bytes)
{
	return (bytes + 4095) & ~(size_t)4095;
}

static uint64_t fresh_make(uint64_t next, uint64_t end)
{
	return end << 32 | next;
}

int arena_open(struct arena *arena, uint32_t capacity, struct board_shard *notes)
{
	uint32_t shards = cpu_parts(capacity, ARENA_SHARDS_MAX, ARENA_SHARD_SLOTS_MIN);
	uint32_t shard_slots = (capacity + shards - 1) / shards;
	/* The offsets of the arrays in the arena's mapping. The array of pairs comes first. */
	size_t cold = align_up(capacity * sizeof(struct timer));
	size_t intervals = cold + align_up(capacity * sizeof(struct timer_cold));
	size_t filings = intervals + align_up(capacity * sizeof(atomic_u64));
	size_t shards_begin = filings + align_up(capacity * sizeof(struct timer_filing));
	struct memory memory = { .base = NULL };
	int result = memory_reserve(&memory, shards_begin + shards * sizeof(struct arena_shard));
	char *base = memory.base;

	if (result < 0)
		return result;
	*arena = (struct arena){
		.timers = {
			.pairs = (void *)base,
			.cold = (void *)(base + cold),
			.intervals_ns = (void *)(base + intervals),
			.first_generation = arena_first_generation(),
		},
		.filings = (void *)(base + filings),
		.shards = (void *)(base + shards_begin),
		.shard_mask = shards - 1,
		.shard_slots = shard_slots,
		.capacity = capacity,
		.memory = memory,
	};
	for (uint32_t i = 0; i < shards; i++) {
		uint64_t begin = u64_min((uint64_t)i * shard_slots, capacity);
		uint64_t end = u64_min(begin + shard_slots, capacity);

		arena->shards[i].begin = (uint32_t)begin;
		arena->shards[i].notes = notes ? &notes[i] : NULL;
		/* Relaxed: the arena is not shared yet. */
		u64_store_relaxed(&arena->shards[i].fresh, fresh_make(begin, end));
	}
	return 0;
}

void arena_close(struct arena *arena)
{
	memory_release(&arena->memory);
}

/* Copy the numbers of a changed stack to the board. The stack itself is in private memory. */
static void shard_note(const struct arena_shard *shard, uint64_t takes, uint64_t depth)
{
	if (shard->notes)
		/* Relaxed: only readers of the board use the copy. */
		u64_store_relaxed(&shard->notes->stack, takes << BOARD_DEPTH_BITS | depth);
}

/* Prefetch the record and the pair of the stack's next slot, for arena_take() and timer_arm(). */
CPU_FETCHES void shard_expect_pop(const struct arena *arena, uint32_t slot)
{
	if (slot >= arena->capacity)
		return;
	timer_fetch_record(&arena->timers, slot);
	__builtin_prefetch(&arena->timers.pairs[slot], 1);
}

/*
 * Take a slot off a stack. Returns SLOT_NONE if the stack is empty. If another thread takes the
 * slot and overwrites its link, the top changes and the CAS fails. The CAS only acquires, because a
 * thread that takes a slot publishes nothing. The CAS continues the release sequences of the puts.
 */
static inline __attribute__((always_inline)) uint32_t shard_pop(const struct arena *arena,
                                                                struct arena_shard *shard)
{
	uint64_t top = u64_load_acquire(&shard->top); /* [free]: the slot's last use has ended */

	while (top_slot(top) != SLOT_NONE) {
		uint32_t slot = top_slot(top);
		/* Relaxed: the top was loaded with acquire, and the CAS confirms the link. */
		uint64_t link = u64_load_relaxed(&arena->timers.cold[slot].data);

		if (u64_cas_acquire(&shard->top, &top,
		                    top_make(top_takes(top) + 1, link_below(link)))) {
			shard_note(shard, top_takes(top) + 1, link_depth_below(link));
			shard_expect_pop(arena, link_below(link));
			return slot;
		}
	}
	return SLOT_NONE;
}

/*
 * Take up to `count` slots off a stack in one step. The slots stay linked as a list, from the top
 * down. Returns the first slot or SLOT_NONE. `*ret_taken` is the number of slots in the list.
 */
static uint32_t shard_pop_list(struct arena *arena, struct arena_shard *shard, unsigned count,
                               unsigned *ret_taken)
{
	uint64_t top = u64_load_acquire(&shard->top); /* [free]: the slot's last use has ended */

	for (;;) {
		uint32_t below = top_slot(top), first = below;
		uint64_t link = 0;
		unsigned taken = 0;

		/* Relaxed as in shard_pop(): if another thread overwrote a link, the CAS fails. */
		while (taken < count && below < arena->capacity) {
			link = u64_load_relaxed(&arena->timers.cold[below].data);
			__builtin_prefetch(&arena->timers.pairs[below], 1);
			below = link_below(link);
			taken++;
		}
		*ret_taken = taken;
		if (taken == 0)
			return SLOT_NONE;
		if (u64_cas_acquire(&shard->top, &top, top_make(top_takes(top) + taken, below))) {
			shard_note(shard, top_takes(top) + taken, link_depth_below(link));
			shard_expect_pop(arena, below);
			return first;
		}
	}
}

/*
 * Returns how many slots are on the stack with this top. If another thread has taken the top slot
 * after the load of `top`, the result may be any number. A CAS of the top then fails.
 */
static uint32_t stack_depth(const struct arena *arena, uint64_t top)
{
	uint32_t slot = top_slot(top);

	if (slot >= arena->capacity)
		return 0;
	return 1 + link_depth_below(u64_load_relaxed(&arena->timers.cold[slot].data));
}

/* Put slots onto a stack, slots[0] lowest, unless the stack holds more than `depth_max`. */
static inline __attribute__((always_inline)) bool shard_push(const struct arena *arena,
                                                             struct arena_shard *shard,
                                                             const uint32_t *slots, unsigned count,
                                                             uint32_t depth_max)
{
	uint64_t top = u64_load_acquire(&shard->top);
	uint32_t depth;

	do {
		uint32_t below = top_slot(top);

		/* A stale `depth` may be any number. Any number is at most UINT32_MAX. */
		depth = stack_depth(arena, top);
		if (depth > depth_max)
			return false;
		for (unsigned i = 0; i < count; i++) {
			u64_store_relaxed(&arena->timers.cold[slots[i]].data,
			                  link_make(below, depth++));
			below = slots[i];
		}
		/* [free]: the thread that takes a slot sees the end of the slot's last use. */
	} while (!u64_cas_acq_rel(&shard->top, &top, top_make(top_takes(top), slots[count - 1])));
	shard_note(shard, top_takes(top), depth);
	return true;
}

static uint64_t fresh_left(uint64_t fresh)
{
	return (fresh >> 32) - (uint32_t)fresh;
}

/*
 * Take a slot of the shard that was never used. Relaxed: the memory is zeroed, and no other thread
 * has written to it. The first access of the slot is a write. A read would map the kernel's page of
 * zeros, and the first write would have to remove this mapping on every CPU.
 */
static uint32_t shard_take_fresh(const struct arena *arena, struct arena_shard *shard)
{
	uint64_t fresh = u64_load_relaxed(&shard->fresh);

	while (fresh_left(fresh) > 0)
		if (u64_cas_relaxed(&shard->fresh, &fresh, fresh + 1)) {
			if (shard->notes)
				(void)u64_fetch_add_relaxed(&shard->notes->used, 1);
			/* A new slot is not scheduled. Relaxed: no other thread has the slot. */
			u64_store_relaxed(&arena->timers.pairs[(uint32_t)fresh].deadline_ns,
			                  TIMER_NEVER_NS);
			return (uint32_t)fresh;
		}
	return SLOT_NONE;
}

/* Returns how many slots are on the shard's stack. Relaxed: the caller needs only a hint. */
static uint64_t shard_depth(const struct arena *arena, const struct arena_shard *shard)
{
	return stack_depth(arena, u64_load_relaxed(&shard->top));
}

/* Returns the index after the last slot of the shard that was ever used. */
static uint32_t shard_used_end(const struct arena_shard *shard)
{
	/* Relaxed: an armer advances `fresh` before it gives the handle to other threads. */
	return (uint32_t)u64_load_relaxed(&shard->fresh);
}

/* Returns the stack's top, and in `*ret_depth` the number of slots on the stack at that time. */
static uint64_t shard_look(const struct arena *arena, struct arena_shard *shard,
                           uint64_t *ret_depth)
{
	uint64_t top = u64_load_acquire(&shard->top); /* [free]: the slot's last use has ended */

	do {
		*ret_depth = stack_depth(arena, top);
		/*
		 * If another thread has overwritten the link, the top has changed and the CAS
		 * fails. The CAS releases, so that the load of the link comes before the CAS.
		 */
	} while (!u64_cas_acq_rel(&shard->top, &top, top));
	return top;
}

static uint32_t arena_steal(struct arena *arena, uint32_t home)
{
	const struct arena_shard *shard = &arena->shards[home];
	uint64_t enough = shard_used_end(shard) - shard->begin < ARENA_FEW ? 1 : ARENA_STEAL_MIN;

	for (uint32_t i = 1; i <= arena->shard_mask && i <= ARENA_STEAL_LOOKS; i++) {
		struct arena_shard *other = &arena->shards[(home + i) & arena->shard_mask];

		if (shard_depth(arena, other) >= enough)
			return shard_pop(arena, other);
	}
	return SLOT_NONE;
}

/*
 * Search all shards. Return SLOT_NONE only if no stack has changed during the search. Every take
 * changes the count in the stack's top, and every put changes the slot in the top. The second loop
 * reads each top by a CAS that changes nothing. A CAS that succeeds has read the newest top, but a
 * load could read an older top. For example, one thread puts slot A back, then another thread takes
 * slot B, the last slot that was never used. The CAS in shard_take_fresh() is relaxed. A thread
 * that sees slot B as taken could therefore load a top without slot A.
 */
static uint32_t arena_take_last(struct arena *arena, uint32_t home)
{
	uint64_t tops[ARENA_SHARDS_MAX];
	bool changed;

	do {
		for (uint32_t i = 0; i <= arena->shard_mask; i++) {
			uint32_t index = (home + i) & arena->shard_mask;
			struct arena_shard *shard = &arena->shards[index];
			uint32_t slot = shard_take_fresh(arena, shard);

			tops[index] = u64_load_relaxed(&shard->top);
			if (slot == SLOT_NONE)
				slot = shard_pop(arena, shard);
			if (slot != SLOT_NONE)
				return slot;
			test_point(TEST_POINT_TAKE_FOUND_NONE);
		}
		changed = false;
		for (uint32_t i = 0; i <= arena->shard_mask; i++) {
			uint64_t depth;

			changed |= tops[i] != shard_look(arena, &arena->shards[i], &depth);
		}
	} while (changed);
	return SLOT_NONE;
}

/* This function is not inline, so that arena_take() saves no registers. */
static __attribute__((noinline)) uint32_t arena_take_elsewhere(struct arena *arena, uint32_t home)
{
	uint32_t slot = arena_steal(arena, home);

	if (slot == SLOT_NONE)
		slot = shard_take_fresh(arena, &arena->shards[home]);
	return slot == SLOT_NONE ? arena_take_last(arena, home) : slot;
}

uint32_t arena_take(struct arena *arena, unsigned cpu)
{
	uint32_t home = cpu & arena->shard_mask;
	uint32_t slot = shard_pop(arena, &arena->shards[home]);

	return slot == SLOT_NONE ? arena_take_elsewhere(arena, home) : slot;
}

uint32_t arena_next(const struct arena *arena, uint32_t slot)
{
	/* Relaxed: only the caller uses the slot. */
	return link_below(u64_load_relaxed(&arena->timers.cold[slot].data));
}

static void arena_put_list(struct arena *arena, unsigned cpu, uint32_t slot, unsigned count)
{
	while (count-- > 0) {
		uint32_t next = arena_next(arena, slot);

		arena_put(arena, cpu, slot);
		slot = next;
	}
}

uint32_t arena_take_list(struct arena *arena, unsigned cpu, unsigned count, unsigned *ret_taken)
{
	struct arena_shard *shard = &arena->shards[cpu & arena->shard_mask];
	uint32_t list = shard_pop_list(arena, shard, count, ret_taken);

	while (*ret_taken < count) {
		uint32_t slot = arena_take(arena, cpu);

		if (slot == SLOT_NONE) {
			arena_put_list(arena, cpu, list, *ret_taken);
			return SLOT_NONE;
		}
		u64_store_relaxed(&arena->timers.cold[slot].data, link_make(list, 0));
		list = slot;
		(*ret_taken)++;
	}
	return list;
}

/* This function is not inline, because its division would make arena_put() save registers. */
static __attribute__((noinline)) void arena_put_home(const struct arena *arena, uint32_t slot)
{
	(void)shard_push(arena, &arena->shards[slot / arena->shard_slots], &slot, 1, UINT32_MAX);
}

void arena_put(struct arena *arena, unsigned cpu, uint32_t slot)
{
	if (!shard_push(arena, &arena->shards[cpu & arena->shard_mask], &slot, 1, ARENA_KEEP - 1))
		arena_put_home(arena, slot);
}

void arena_put_many(struct arena *arena, unsigned cpu, const uint32_t *slots, unsigned count,
                    bool share)
{
	struct arena_shard *shard = &arena->shards[cpu & arena->shard_mask];

	if (!shard_push(arena, shard, slots, count, share ? ARENA_KEEP - 1 : UINT32_MAX))
		for (unsigned i = 0; i < count; i++)
			arena_put(arena, cpu, slots[i]);
}

uint32_t arena_next_used(const struct arena *arena, uint32_t slot)
{
	for (uint32_t i = 0; i <= arena->shard_mask; i++) {
		const struct arena_shard *shard = &arena->shards[i];
		uint32_t end = shard_used_end(shard);

		if (slot < shard->begin)
			slot = shard->begin;
		if (slot < end)
			return slot;
	}
	return SLOT_NONE;
}

struct arena_counts arena_count(const struct arena *arena)
{
	uint64_t used = 0;
	uint64_t free_again = 0;
	uint64_t taken = 0;

	for (uint32_t i = 0; i <= arena->shard_mask; i++) {
		struct arena_shard *shard = &arena->shards[i];
		uint64_t depth;

		taken += top_takes(shard_look(arena, shard, &depth));
		free_again += depth;
		used += shard_used_end(shard) - shard->begin;
	}
	return (struct arena_counts){
		.taken = taken + used,
		.in_use = free_again < used ? used - free_again : 0,
		.in_use_max = used,
	};
}
