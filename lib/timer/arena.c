/* SPDX-License-Identifier: MIT */
/*
 * See arena.h. Any thread calls.
 *
 * Each shard is a stack (R. K. Treiber, "Systems programming: coping with parallelism", 1986). Its
 * top counts the takes, so that a slot which came back in between is noticed (the ABA problem),
 * and so that arms need no other count. A free slot's link also tells how many lie below
 * it. A slot is put to the stack of this CPU, or where that is deep to the shard that it came from.
 * Taken in order: from the own stack; from another that holds many; from the shard's own slots
 * never used; from others'. One at a time, so that a thread stopped anywhere has one slot in hand;
 * only for a call that arms many from the own stack as many as it wants.
 * Only when all are found empty twice over, with nothing put in between, is there no slot.
 *
 * Labels: [free] arena_put → arena_take: carries that the one before is done with the slot.
 */
#include "timer/arena.h"

#include "base/cpu.h"

/*
 * Another CPU's stack is taken from, rather than a slot never used, if it holds this many: taking
 * the last few to and fro would cost more than the few slots. Not so where few were ever used.
 */
#ifndef ARENA_STEAL_MIN
#define ARENA_STEAL_MIN 32
#endif
#ifndef ARENA_FEW
#define ARENA_FEW 512
#endif
/* Stacks of other CPUs that are looked at before a slot never used is taken. */
#define ARENA_STEAL_LOOKS 15
/*
 * What was put last is taken first, while it is in this CPU's cache. But a stack keeps no more than
 * this many that are not its own: else after one thread's cancels the others find nothing near.
 */
#ifndef ARENA_KEEP
#define ARENA_KEEP 256
#endif
#define ARENA_SHARDS_MAX BOARD_SHARDS_MAX
/* No more shards than leave each this many slots. */
#ifndef ARENA_SHARD_SLOTS_MIN
#define ARENA_SHARD_SLOTS_MIN 256
#endif

/* The link of a free slot: the slot below it, and how many there are from there down. */
static uint64_t link_make(uint32_t below, uint32_t depth_below)
{
	return (uint64_t)depth_below << 32 | (uint32_t)(below + 1);
}

static uint32_t link_below(uint64_t link)
{
	return (uint32_t)link - 1; /* 0 - 1 is SLOT_NONE */
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

static uint32_t arena_shards_for(uint32_t capacity)
{
	uint64_t shards = bits_power_of_two(cpu_count());

	shards = u64_min(shards, ARENA_SHARDS_MAX);
	while (shards > 1 && capacity / shards < ARENA_SHARD_SLOTS_MIN)
		shards /= 2;
	return (uint32_t)shards;
}

/*
 * Two hubs must not know each other's handles, so each starts its generations somewhere else: the
 * k-th hub of the process at the bits of k, reversed, which keeps any two far apart.
 */
static uint64_t arena_first_generation(void)
{
	static atomic_u64 opened;
	uint64_t serial = u64_fetch_add_relaxed(&opened, 1); /* only that each gets another one */
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

int arena_open(struct arena *arena, uint32_t capacity)
{
	uint32_t shards = arena_shards_for(capacity);
	uint32_t shard_slots = (capacity + shards - 1) / shards;
	size_t pair_bytes = align_up(capacity * sizeof(struct timer));
	size_t cold_bytes = align_up(capacity * sizeof(struct timer_cold));
	size_t interval_bytes = align_up(capacity * sizeof(atomic_u64));
	size_t filing_bytes = align_up(capacity * sizeof(struct timer_filing));
	size_t shard_bytes = align_up(shards * sizeof(struct arena_shard));
	struct memory memory = { .base = NULL };
	int result = memory_reserve(&memory, pair_bytes + cold_bytes + interval_bytes +
	                                             filing_bytes + shard_bytes);
	char *base = memory.base;

	if (result < 0)
		return result;
	*arena = (struct arena){
		.timers = {
			.pairs = (struct timer *)(void *)base,
			.cold = (struct timer_cold *)(void *)(base + pair_bytes),
			.intervals_ns = (atomic_u64 *)(void *)(base + pair_bytes + cold_bytes),
			.first_generation = arena_first_generation(),
		},
		.filings = (struct timer_filing *)(void *)(base + pair_bytes + cold_bytes +
		                                           interval_bytes),
		.shards = (struct arena_shard *)(void *)(base + pair_bytes + cold_bytes +
		                                         interval_bytes + filing_bytes),
		.shard_mask = shards - 1,
		.shard_slots = shard_slots,
		.capacity = capacity,
		.memory = memory,
	};
	for (uint32_t i = 0; i < shards; i++) {
		uint64_t begin = u64_min((uint64_t)i * shard_slots, capacity);
		uint64_t end = u64_min(begin + shard_slots, capacity);

		arena->shards[i].begin = (uint32_t)begin;
		/* Not yet shared. */
		u64_store_relaxed(&arena->shards[i].fresh, fresh_make(begin, end));
	}
	return 0;
}

void arena_close(struct arena *arena)
{
	memory_release(&arena->memory);
}

void arena_observe(struct arena *arena, struct board_shard *notes)
{
	for (uint32_t i = 0; i <= arena->shard_mask; i++)
		arena->shards[i].notes = &notes[i];
}

/* After a change of the stack: a plain store, for the stack itself must not be shared memory. */
static void shard_note(const struct arena_shard *shard, uint64_t takes, uint64_t depth)
{
	if (shard->notes)
		/* Relaxed: a number to read, right again with the next change. */
		u64_store_relaxed(&shard->notes->stack, takes << BOARD_DEPTH_BITS | depth);
}

/* Fetch what the next take of the stack will read, and its arm write. */
CPU_FETCHES void shard_expect_pop(const struct arena *arena, uint32_t slot)
{
	if (slot >= arena->capacity)
		return;
	__builtin_prefetch(&arena->timers.cold[slot], 1);
	__builtin_prefetch(&arena->timers.pairs[slot], 1);
}

/*
 * Take a slot off a stack, or SLOT_NONE if it is empty. While we read the link others may take the
 * slot and write over it; then the top has changed, and what we read is thrown away. Acquire alone:
 * a take tells nothing of its own, and passes on what those that put have told.
 */
static uint32_t shard_pop(struct arena *arena, struct arena_shard *shard)
{
	uint64_t top = u64_load_acquire(&shard->top); /* [free] */

	while (top_slot(top) != SLOT_NONE) {
		uint32_t slot = top_slot(top);
		/* Relaxed: ordered by the top, which tells whether to believe it. */
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
 * Take up to `count` slots off a stack in one step. They stay a list: each one's link tells the one
 * that lay below it. Returns the first, or SLOT_NONE, and how many there are.
 */
static uint32_t shard_pop_list(struct arena *arena, struct arena_shard *shard, unsigned count,
                               unsigned *ret_taken)
{
	uint64_t top = u64_load_acquire(&shard->top); /* [free] */

	for (;;) {
		uint32_t below = top_slot(top), first = below;
		uint64_t link = 0;
		unsigned taken = 0;

		/* A link that was written over may say anything; then the top has changed. */
		while (taken < count && below < arena->capacity) {
			link = u64_load_relaxed(
				&arena->timers.cold[below].data); /* see shard_pop */
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
 * How many slots are on the stack with this top. If it has been taken from since, anything at all,
 * what a caller gave included; a CAS of the top then fails.
 */
static uint32_t stack_depth(const struct arena *arena, uint64_t top)
{
	uint32_t slot = top_slot(top);

	if (slot >= arena->capacity)
		return 0;
	return 1 + link_depth_below(u64_load_relaxed(&arena->timers.cold[slot].data));
}

/* Put slots onto a stack, slots[0] lowest, unless it holds more than `depth_max`. */
static bool shard_push(struct arena *arena, struct arena_shard *shard, const uint32_t *slots,
                       unsigned count, uint32_t depth_max)
{
	uint64_t top = u64_load_acquire(&shard->top);
	uint32_t depth;

	do {
		uint32_t below = top_slot(top);

		/* Whatever it is, it is not beyond a `depth_max` of UINT32_MAX. */
		depth = stack_depth(arena, top);
		if (depth > depth_max)
			return false;
		for (unsigned i = 0; i < count; i++) {
			u64_store_relaxed(&arena->timers.cold[slots[i]].data,
			                  link_make(below, depth++));
			below = slots[i];
		}
		/* [free] */
	} while (!u64_cas_acq_rel(&shard->top, &top, top_make(top_takes(top), slots[count - 1])));
	shard_note(shard, top_takes(top), depth);
	return true;
}

static uint64_t fresh_left(uint64_t fresh)
{
	return (fresh >> 32) - (uint32_t)fresh;
}

/*
 * Take a slot of the shard that was never used. Nothing is carried: it is zeroed memory, to which
 * we write first. Were it read first, the kernel would show a page of zeros, and have to take it
 * away from every CPU with the first write.
 */
static uint32_t shard_take_fresh(const struct arena *arena, struct arena_shard *shard)
{
	uint64_t fresh = u64_load_relaxed(&shard->fresh);

	while (fresh_left(fresh) > 0)
		if (u64_cas_relaxed(&shard->fresh, &fresh, fresh + 1)) {
			if (shard->notes)
				(void)u64_fetch_add_relaxed(&shard->notes->used, 1);
			/* Not scheduled. Relaxed: no other thread knows the slot. */
			u64_store_relaxed(&arena->timers.pairs[(uint32_t)fresh].deadline_ns,
			                  TIMER_NEVER_NS);
			return (uint32_t)fresh;
		}
	return SLOT_NONE;
}

/* How many slots are on the stack. If others take and put meanwhile, only a hint: relaxed. */
static uint64_t shard_depth(const struct arena *arena, const struct arena_shard *shard)
{
	return stack_depth(arena, u64_load_relaxed(&shard->top));
}

/* One beyond the shard's slots that were ever used. */
static uint32_t shard_used_end(const struct arena_shard *shard)
{
	return (uint32_t)u64_load_relaxed(&shard->fresh); /* heard of through the slot's armer */
}

/* The stack's top, and how many slots were on it at that instant. */
static uint64_t shard_look(const struct arena *arena, struct arena_shard *shard,
                           uint64_t *ret_depth)
{
	uint64_t top = u64_load_acquire(&shard->top); /* [free] */

	do {
		*ret_depth = stack_depth(arena, top);
		/*
		 * Changes nothing, but fails if a take has let others write over the link. The
		 * release half keeps the load of the link before it.
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
 * Nothing found in the usual places. Look everywhere, and believe "none" only if no stack was
 * touched meanwhile: the tops, which only grow by takes and change by puts, agree.
 *
 * The second look changes each top from what it is to the same, and so sees the newest. A load
 * might be older: a slot is put back, then another thread takes the last slot that was never used,
 * and we see the latter alone, since nothing is carried with it.
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
		}
		changed = false;
		for (uint32_t i = 0; i <= arena->shard_mask; i++) {
			uint64_t depth;

			changed |= tops[i] != shard_look(arena, &arena->shards[i], &depth);
		}
	} while (changed);
	return SLOT_NONE;
}

uint32_t arena_take(struct arena *arena, unsigned cpu)
{
	uint32_t home = cpu & arena->shard_mask;
	struct arena_shard *shard = &arena->shards[home];
	uint32_t slot = shard_pop(arena, shard);

	if (slot == SLOT_NONE)
		slot = arena_steal(arena, home);
	if (slot == SLOT_NONE)
		slot = shard_take_fresh(arena, shard);
	return slot == SLOT_NONE ? arena_take_last(arena, home) : slot;
}

uint32_t arena_next(const struct arena *arena, uint32_t slot)
{
	/* Relaxed: the slot is ours alone. */
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

void arena_put(struct arena *arena, unsigned cpu, uint32_t slot)
{
	struct arena_shard *own = &arena->shards[slot / arena->shard_slots];

	if (!shard_push(arena, &arena->shards[cpu & arena->shard_mask], &slot, 1, ARENA_KEEP - 1))
		(void)shard_push(arena, own, &slot, 1, UINT32_MAX);
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
	/* Those of a stack belong together; all else is numbers to read. */
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
