/* SPDX-License-Identifier: MIT */
/*
 * Each shard has a stack of free slots (R. K. Treiber, "Systems programming: coping with
 * parallelism", 1986). The top counts the takes, against ABA. A link also has the number of slots
 * below. Only arena_take_list() takes several at once: a thread stopped in another arm keeps one,
 * in a drain or a cancel of many up to 32.
 *
 * A CPU keeps up to ARENA_KEEP slots that it has freed, which are in its cache; the others go home
 * to their shard. So what a consumer frees comes back to those who arm, and the four pairs of a
 * cache line mostly stay with one CPU.
 *
 * A CPU whose stack is empty takes fresh slots, which were never used, so that it stays away from
 * the stacks of others. But at each ARENA_LOOK-th fresh slot it looks at all stacks, and takes from
 * one with more than ARENA_LEAVE slots instead. So memory grows only with what lives, however the
 * bursts of CPUs alternate: a look finds at most ARENA_LEAVE slots free on each stack, and after it
 * at most ARENA_LOOK - 1 fresh slots are taken from each end of a shard before the next look.
 *
 * Labels: [free] arena_put → arena_take: the previous user is done with the slot.
 */
#include "timer/arena.h"

#include "base/cpu.h"
#include "base/test_point.h"

#ifndef ARENA_KEEP
#define ARENA_KEEP 256
#endif
#ifndef ARENA_LOOK
#define ARENA_LOOK 32
#endif
#ifndef ARENA_LEAVE
#define ARENA_LEAVE 64
#endif
/*
 * The manual promises 256 slots for each CPU beside what lives. There may be nearly twice as many
 * shards as CPUs, because their number is a power of two.
 */
_Static_assert(ARENA_LEAVE + 2 * (ARENA_LOOK - 1) <= 256 / 2, "memory follows what lives");
#define ARENA_SHARDS_MAX BOARD_SHARDS_MAX
#define TAKES_BITS (64 - TIMER_SLOT_BITS) /* of a top */
/* slots of a shard, at least */
#ifndef ARENA_SHARD_SLOTS_MIN
#define ARENA_SHARD_SLOTS_MIN 256
#endif
/* pairs in a cache line, with which a shard begins */
#define ARENA_LINE_SLOTS ((uint32_t)(CACHE_LINE_BYTES / sizeof(struct timer)))
/* sorted by their shards at once */
#ifndef ARENA_PUT_BATCH
#define ARENA_PUT_BATCH 256
#endif

/* The slot below, and how many lie below. */
static uint64_t link_make(uint32_t below, uint32_t depth_below)
{
	return (uint64_t)depth_below << 32 | (uint32_t)(below + 1);
}

static uint32_t link_below(uint64_t link)
{
	return (uint32_t)link - 1; /* 0: SLOT_NONE */
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
 * The hub's serial number with its 38 bits reversed: two hubs begin far apart, and reject each
 * other's handles.
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
	uint32_t lines = (shard_slots + ARENA_LINE_SLOTS - 1) / ARENA_LINE_SLOTS;
	size_t cold = align_up(capacity * sizeof(struct timer));
	size_t intervals = cold + align_up(capacity * sizeof(struct timer_cold));
	size_t filings = intervals + align_up(capacity * sizeof(atomic_u64));
	size_t shards_begin = filings + align_up(capacity * sizeof(struct timer_filing));
	struct memory memory = { .base = NULL };
	int result = memory_reserve(&memory, shards_begin + shards * sizeof(struct arena_shard));
	char *base = memory.base;

	if (result < 0)
		return result;
	shard_slots = lines * ARENA_LINE_SLOTS;
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
		.shards_per_slot = UINT64_MAX / shard_slots + 1,
		.capacity = capacity,
		.memory = memory,
	};
	for (uint32_t i = 0; i < shards; i++) {
		uint64_t begin = u64_min((uint64_t)i * shard_slots, capacity);
		uint64_t end = u64_min((uint64_t)(i + 1) * shard_slots, capacity);

		arena->shards[i].begin = (uint32_t)begin;
		arena->shards[i].end = (uint32_t)end;
		arena->shards[i].notes = notes ? &notes[i] : NULL;
		/* relaxed: not shared yet */
		u64_store_relaxed(&arena->shards[i].fresh, fresh_make(begin, end));
	}
	return 0;
}

void arena_close(struct arena *arena)
{
	memory_release(&arena->memory);
}

/*
 * The board's copy of a changed stack's numbers, unless it has a newer one: between two takes a
 * stack only grows. Modulo 2^64, as the takes.
 */
static void shard_note(const struct arena_shard *shard, uint64_t takes, uint64_t depth)
{
	uint64_t newer = takes << BOARD_DEPTH_BITS | depth, before;

	if (!shard->notes)
		return;
	before = u64_load_relaxed(&shard->notes->stack); /* relaxed: only shown */
	while ((int64_t)(newer - before) > 0 &&
	       !u64_cas_relaxed(&shard->notes->stack, &before, newer)) {
	}
}

/* After `count` takes, the last of which found this top. */
static void shard_taken(struct arena_shard *shard, uint64_t takes, unsigned count, uint64_t depth)
{
	/* relaxed: a counter, and its copy */
	if ((takes + count) >> TAKES_BITS != 0) {
		uint64_t laps = u64_fetch_add_relaxed(&shard->laps, 1) + 1;

		if (shard->notes)
			u64_store_relaxed(&shard->notes->laps, laps);
	}
	shard_note(shard, takes + count, depth);
}

/* Of the next slot, for arena_take() and timer_arm(). */
CPU_FETCHES void shard_expect_pop(const struct arena *arena, uint32_t slot)
{
	if (slot >= arena->capacity)
		return;
	timer_fetch_record(&arena->timers, slot);
	__builtin_prefetch(&arena->timers.pairs[slot], 1);
}

/*
 * SLOT_NONE: empty. If another thread takes the slot and overwrites its link, the CAS fails. It
 * only acquires, since it publishes nothing, and continues the puts' release sequences.
 */
static inline __attribute__((always_inline)) uint32_t shard_pop(const struct arena *arena,
                                                                struct arena_shard *shard)
{
	uint64_t top = u64_load_acquire(&shard->top); /* [free]: the slot's last use has ended */

	while (top_slot(top) != SLOT_NONE) {
		uint32_t slot = top_slot(top);
		/* Relaxed: after the top's acquire, and confirmed by the CAS. */
		uint64_t link = u64_load_relaxed(&arena->timers.cold[slot].data);

		if (u64_cas_acquire(&shard->top, &top,
		                    top_make(top_takes(top) + 1, link_below(link)))) {
			shard_taken(shard, top_takes(top), 1, link_depth_below(link));
			shard_expect_pop(arena, link_below(link));
			return slot;
		}
	}
	return SLOT_NONE;
}

/*
 * Up to `count` in one step, still linked, from the top down. Returns the first of `*ret_taken`, or
 * SLOT_NONE.
 */
static uint32_t shard_pop_list(struct arena *arena, struct arena_shard *shard, unsigned count,
                               unsigned *ret_taken)
{
	uint64_t top = u64_load_acquire(&shard->top); /* [free]: the slot's last use has ended */

	for (;;) {
		uint32_t below = top_slot(top), first = below;
		uint64_t link = 0;
		unsigned taken = 0;

		/* Relaxed as in shard_pop(). */
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
			shard_taken(shard, top_takes(top), taken, link_depth_below(link));
			shard_expect_pop(arena, below);
			return first;
		}
	}
}

/* With this top. Any number if the top slot was taken since; a CAS of the top then fails. */
static uint32_t stack_depth(const struct arena *arena, uint64_t top)
{
	uint32_t slot = top_slot(top);

	if (slot >= arena->capacity)
		return 0;
	return 1 + link_depth_below(u64_load_relaxed(&arena->timers.cold[slot].data));
}

/*
 * Whether more than ARENA_LEAVE slots are there, which is also assumed if the top slot was taken
 * meanwhile, because its link may then be any number. A link is loaded by an acquire, so that the
 * second load of the top comes after it.
 */
static inline bool shard_has_surplus(const struct arena *arena, const struct arena_shard *shard)
{
	uint64_t top = u64_load_acquire(&shard->top); /* [free]: so the top slot's link is valid */
	uint64_t link;

	if (top_slot(top) == SLOT_NONE)
		return false;
	test_point(TEST_POINT_TAKE_READ_TOP);
	link = u64_load_acquire(&arena->timers.cold[top_slot(top)].data);
	return link_depth_below(link) >= ARENA_LEAVE || u64_load_relaxed(&shard->top) != top;
}

/* In one step, slots[0] lowest, unless over `depth_max` are there. */
static inline __attribute__((always_inline)) bool shard_push(const struct arena *arena,
                                                             struct arena_shard *shard,
                                                             const uint32_t *slots, unsigned count,
                                                             uint32_t depth_max)
{
	uint64_t top = u64_load_acquire(&shard->top);
	uint32_t depth;

	do {
		uint32_t below = top_slot(top);

		depth = stack_depth(arena, top);
		if (depth > depth_max)
			return false;
		for (unsigned i = 0; i < count; i++) {
			u64_store_relaxed(&arena->timers.cold[slots[i]].data,
			                  link_make(below, depth++));
			below = slots[i];
		}
		/* [free]: the end of the slot's last use */
	} while (!u64_cas_acq_rel(&shard->top, &top, top_make(top_takes(top), slots[count - 1])));
	shard_note(shard, top_takes(top), depth);
	return true;
}

static uint64_t fresh_next(uint64_t fresh)
{
	return (uint32_t)fresh;
}

static uint64_t fresh_end(uint64_t fresh)
{
	return fresh >> 32;
}

static uint64_t shard_left(const struct arena_shard *shard)
{
	/* Relaxed: an armer changes it before he gives the handle away. */
	uint64_t fresh = u64_load_relaxed(&shard->fresh);

	return fresh_end(fresh) - fresh_next(fresh);
}

static uint64_t shard_used(const struct arena_shard *shard)
{
	return shard->end - shard->begin - shard_left(shard);
}

/* With `*ret_depth`, its number of slots. */
static uint64_t shard_read_top(const struct arena *arena, struct arena_shard *shard,
                               uint64_t *ret_depth)
{
	uint64_t top = u64_load_acquire(&shard->top); /* [free]: the slot's last use has ended */

	do {
		*ret_depth = stack_depth(arena, top);
		/* Fails if a link was overwritten; releases, so that the link is loaded before. */
	} while (!u64_cas_acq_rel(&shard->top, &top, top));
	return top;
}

/*
 * The i-th other shard to search, another one for each CPU: CPUs that fill a hub at one pace stay
 * apart.
 */
static uint32_t shard_other(uint32_t home, uint32_t i)
{
	return home ^ i;
}

/*
 * Takes a slot from a stack with more than ARENA_LEAVE, if there is one. The search begins where
 * the last one ended, because a burst empties one stack after the other. Not inline, because few
 * takes of a fresh slot need it.
 */
static __attribute__((noinline)) uint32_t arena_take_surplus(struct arena *arena, uint32_t home)
{
	/* Relaxed: only where to begin. */
	uint64_t first = u64_load_relaxed(&arena->shards[home].surplus);

	for (uint32_t i = 0; i <= arena->shard_mask; i++) {
		uint32_t other = ((uint32_t)first + i) & arena->shard_mask;
		struct arena_shard *shard = &arena->shards[shard_other(home, other)];
		uint32_t slot;

		if (!shard_has_surplus(arena, shard))
			continue;
		slot = shard_pop(arena, shard);
		if (slot == SLOT_NONE)
			continue;
		if (i > 0)
			(void)u64_cas_relaxed(&arena->shards[home].surplus, &first, other);
		return slot;
	}
	return SLOT_NONE;
}

/*
 * Takes a fresh slot of one shard, or instead what a look at the stacks finds. The shard's own CPUs
 * take from the bottom and others from the top, so that they meet in one cache line. Relaxed,
 * because the slot is zeroed and nobody has written it. The first access is a write: a read would
 * map the kernel's page of zeros, to be removed on every CPU later.
 */
static inline __attribute__((always_inline)) uint32_t arena_take_fresh_of(struct arena *arena,
                                                                          uint32_t home,
                                                                          uint32_t index)
{
	struct arena_shard *shard = &arena->shards[index];
	uint64_t fresh = u64_load_relaxed(&shard->fresh);
	bool looked = false;

	while (fresh_next(fresh) < fresh_end(fresh)) {
		bool own = index == home;
		uint64_t slot = own ? fresh_next(fresh) : fresh_end(fresh) - 1;
		uint64_t left = own ? fresh_make(slot + 1, fresh_end(fresh))
		                    : fresh_make(fresh_next(fresh), slot);

		if (slot % ARENA_LOOK == 0 && !looked) {
			uint32_t used = arena_take_surplus(arena, home);

			if (used != SLOT_NONE)
				return used;
			looked = true;
		}
		if (!u64_cas_relaxed(&shard->fresh, &fresh, left))
			continue;
		if (shard->notes)
			(void)u64_fetch_add_relaxed(&shard->notes->used, 1);
		/* Not scheduled. Relaxed: nobody else has the slot. */
		u64_store_relaxed(&arena->timers.pairs[slot].deadline_ns, TIMER_NEVER_NS);
		return (uint32_t)slot;
	}
	return SLOT_NONE;
}

/*
 * Whose fresh slots to take after those of `last`: the next shard's if it is untouched, else those
 * in the middle of the longest row of untouched ones, so that CPUs stay apart; else of any, another
 * one for each CPU. ARENA_SHARDS_MAX: none.
 */
static uint32_t arena_next_shard(const struct arena *arena, uint32_t home, uint32_t last)
{
	uint32_t middle = 0, any = home, row = 0, longest = 0;

	for (uint32_t i = 1; i <= arena->shard_mask; i++) {
		uint32_t index = (last + i) & arena->shard_mask;
		const struct arena_shard *shard = &arena->shards[index];
		uint64_t left = shard_left(shard);

		if (left > 0 && shard_other(home, index) > shard_other(home, any))
			any = index;
		row = left > 0 && left == shard->end - shard->begin ? row + 1 : 0;
		if (row == 1 && i == 1)
			return index;
		if (row > longest) {
			longest = row;
			middle = (index - row / 2) & arena->shard_mask;
		}
	}
	if (longest > 0)
		return middle;
	return any != home ? any : ARENA_SHARDS_MAX;
}

/*
 * Of the own shard, then of one other after the other. CPUs share a cache line only where nothing
 * else is left, and few share a page, in which a random access fetches lines beside its own, too:
 * with shards dealt in turn, two threads took 1.1 times as long for a re-arm.
 */
static uint32_t arena_take_fresh(struct arena *arena, uint32_t home)
{
	struct arena_shard *own = &arena->shards[home];
	/* Relaxed: a hint. Fresh slots never come back. */
	uint64_t filling = u64_load_relaxed(&own->filling);

	/* where others emptied the next one too, arena_take_last() searches all */
	for (unsigned tries = 0; tries < 2 && filling <= arena->shard_mask; tries++) {
		uint32_t index = shard_other(home, (uint32_t)filling);
		uint32_t slot = arena_take_fresh_of(arena, home, index);
		uint32_t next;

		if (slot != SLOT_NONE)
			return slot;
		/* ARENA_SHARDS_MAX stays beyond the mask */
		next = shard_other(home, arena_next_shard(arena, home, index));
		if (u64_cas_relaxed(&own->filling, &filling, next))
			filling = next;
	}
	return SLOT_NONE;
}

/*
 * Whether `count` slots are free. If not, there was a moment between the two loops at which fewer
 * were: the second one finds each top as the first one has read it, and a take would have changed
 * the count in the top, a put the slot; fresh slots only become fewer. The second loop reads by a
 * CAS that changes nothing, because a load could be older: one thread puts slot A back, another
 * takes B, the last fresh one, by a relaxed CAS; who sees B taken could load a top without A.
 */
static bool arena_has(struct arena *arena, uint32_t home, uint64_t count)
{
	uint64_t tops[ARENA_SHARDS_MAX];
	uint64_t depth, found;
	bool changed;

	do {
		found = 0;
		for (uint32_t i = 0; i <= arena->shard_mask && found < count; i++)
			found += shard_left(&arena->shards[shard_other(home, i)]);
		for (uint32_t i = 0; i <= arena->shard_mask && found < count; i++) {
			/* [free]: a slot's last use has ended, so its link is valid */
			tops[i] = u64_load_acquire(&arena->shards[i].top);
			found += stack_depth(arena, tops[i]);
			test_point(TEST_POINT_TAKE_READ_TOP);
		}
		changed = false;
		for (uint32_t i = 0; i <= arena->shard_mask && found < count; i++)
			changed |= tops[i] != shard_read_top(arena, &arena->shards[i], &depth);
	} while (changed);
	return found >= count;
}

/* SLOT_NONE only if at some point no slot was free. */
static uint32_t arena_take_last(struct arena *arena, uint32_t home)
{
	do {
		for (uint32_t i = 0; i <= arena->shard_mask; i++) {
			uint32_t index = shard_other(home, i);
			uint32_t slot = arena_take_fresh_of(arena, home, index);

			if (slot == SLOT_NONE)
				slot = shard_pop(arena, &arena->shards[index]);
			if (slot != SLOT_NONE)
				return slot;
			test_point(TEST_POINT_TAKE_FOUND_NONE);
		}
	} while (arena_has(arena, home, 1));
	return SLOT_NONE;
}

/* Not inline, so that arena_take() saves no registers. */
static __attribute__((noinline)) uint32_t arena_take_elsewhere(struct arena *arena, uint32_t home)
{
	uint32_t slot = arena_take_fresh(arena, home);

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
	uint32_t home = cpu & arena->shard_mask;
	uint32_t list = shard_pop_list(arena, &arena->shards[home], count, ret_taken);
	/* Asked first, because fresh slots that are taken in vain stay committed. */
	bool enough = *ret_taken == count || arena_has(arena, home, count - *ret_taken);

	while (*ret_taken < count) {
		uint32_t slot = enough ? arena_take(arena, cpu) : SLOT_NONE;

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

/* slot / shard_slots by a multiplication, exact for 32 bits (D. Lemire et al., 2019). */
static uint32_t slot_shard(const struct arena *arena, uint32_t slot)
{
	__extension__ typedef unsigned __int128 u128;

	return (uint32_t)((u128)arena->shards_per_slot * slot >> 64);
}

void arena_put(struct arena *arena, unsigned cpu, uint32_t slot)
{
	if (!shard_push(arena, &arena->shards[cpu & arena->shard_mask], &slot, 1, ARENA_KEEP - 1))
		(void)shard_push(arena, &arena->shards[slot_shard(arena, slot)], &slot, 1,
		                 UINT32_MAX);
}

/* At most ARENA_PUT_BATCH, in one step for each shard. */
static void arena_send_home(struct arena *arena, const uint32_t *slots, unsigned count)
{
	uint16_t ends[ARENA_SHARDS_MAX + 1] = { 0 };
	uint32_t sorted[ARENA_PUT_BATCH];
	unsigned begin = 0;

	for (unsigned i = 0; i < count; i++)
		ends[slot_shard(arena, slots[i]) + 1]++;
	for (uint32_t shard = 0; shard < arena->shard_mask; shard++)
		ends[shard + 1] = (uint16_t)(ends[shard + 1] + ends[shard]);
	for (unsigned i = 0; i < count; i++)
		sorted[ends[slot_shard(arena, slots[i])]++] = slots[i];
	for (uint32_t shard = 0; shard <= arena->shard_mask; shard++) {
		if (ends[shard] > begin)
			(void)shard_push(arena, &arena->shards[shard], sorted + begin,
			                 ends[shard] - begin, UINT32_MAX);
		begin = ends[shard];
	}
}

void arena_put_many(struct arena *arena, unsigned cpu, const uint32_t *slots, unsigned count)
{
	struct arena_shard *shard = &arena->shards[cpu & arena->shard_mask];

	/* A consumer that arms keeps what it arms itself. */
	if (shard_push(arena, shard, slots, count, ARENA_KEEP - 1 + (uint32_t)shard_used(shard)))
		return;
	for (unsigned part; count > 0; slots += part, count -= part) {
		part = count < ARENA_PUT_BATCH ? count : ARENA_PUT_BATCH;
		arena_send_home(arena, slots, part);
	}
}

uint32_t arena_next_used(const struct arena *arena, uint32_t slot)
{
	for (uint32_t i = slot_shard(arena, slot); i <= arena->shard_mask; i++) {
		const struct arena_shard *shard = &arena->shards[i];
		uint64_t fresh = u64_load_relaxed(&shard->fresh); /* relaxed as in shard_left() */

		if (slot >= fresh_next(fresh) && slot < fresh_end(fresh))
			slot = (uint32_t)fresh_end(fresh);
		if (slot < shard->end)
			return slot;
		slot = shard->end;
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

		taken += top_takes(shard_read_top(arena, shard, &depth));
		/* relaxed: after the top, so that it includes the top's laps */
		taken += u64_load_relaxed(&shard->laps) << TAKES_BITS;
		free_again += depth;
		used += shard_used(shard);
	}
	return (struct arena_counts){
		.taken = taken + used,
		.in_use = free_again < used ? used - free_again : 0,
		.in_use_max = used,
	};
}
