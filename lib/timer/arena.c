/* SPDX-License-Identifier: MIT */
/*
 * Finds a free slot for each new timer, quickly, and so that CPUs rarely touch each other's memory.
 * Each CPU prefers one shard, its home, which it may share with other CPUs.
 *
 * A shard has a stack of free slots (R. K. Treiber, "Systems programming: coping with parallelism",
 * 1986). The word that names the top slot also counts how many slots were taken. That prevents the
 * ABA problem: a thread whose compare-and-swap comes late fails, even if the same slot is on top
 * again. A slot on the stack holds a link, which names the slot below it and says how many are
 * below. A thread that is stopped in a call keeps few slots from others: one if it was arming a
 * timer, up to 32 if it was taking events or cancelling many timers, and more only in
 * arena_take_list().
 *
 * If another thread takes the top slot and arms a timer in it, the timer's data overwrites the
 * link, and a thread that still reads the link gets any number. Its compare-and-swap of the top
 * then fails, so no slot is taken because of such a number. slot_is_none() aborts on it, so it is
 * called only after the swap. In shard_read_top() the swap changes nothing, and has release order
 * to keep the load of the link before it.
 *
 * shard_has_surplus() returns true if the top has changed since it read the link, because the depth
 * in the link may then be any number, and only false must be certain.
 *
 * shard_pop() and shard_pop_list() change the top by a CAS that has only acquire order. A thread
 * that loads the new top still sees what earlier shard_push() calls have stored, because each such
 * CAS continues their release sequence (C11).
 *
 * A CPU keeps up to ARENA_KEEP slots that it has freed, because they are in its cache. The others
 * go back to the shards to which they belong. So what a consumer frees comes back to those who arm
 * timers, and the four pairs of a cache line mostly stay with one CPU. arena_put_many() lets the
 * CPU keep ARENA_KEEP slots and as many more as the shard has used, because a thread that takes
 * many events may also arm many timers.
 *
 * A CPU whose stack is empty takes fresh slots, which were never used, so that it stays away from
 * the stacks of others. But at each ARENA_LOOK-th fresh slot it searches all stacks, and takes a
 * slot from one with more than ARENA_LEAVE slots instead. So memory grows only with the number of
 * live timers, however the bursts of CPUs alternate: if such a search finds nothing, each stack has
 * at most ARENA_LEAVE slots, and at most ARENA_LOOK - 1 fresh slots are taken from each end of a
 * shard before the next search. For that, shard_has_surplus() must not be false by mistake. A
 * search begins with the stack on which the CPU last found a slot, because a thread that arms many
 * timers empties one stack after the other.
 *
 * Different CPUs take fresh slots from different shards, because a CPU also prefetches the lines
 * next to those that it uses: if two threads re-armed timers in alternate cache lines, each re-arm
 * would take 1.1 times as long. A fresh slot is written before it is read, because a read would map
 * the kernel's page of zeros, which all CPUs would have to drop from their TLBs at the first write.
 *
 * arena_next_shard() prefers the shard right after the last one, if it is wholly unused. Otherwise
 * it finds the longest sequence of wholly unused shards, and chooses the one in the middle: if
 * another CPU begins with the first of them, each of the two CPUs can use half of the sequence. If
 * no shard is wholly unused, it chooses one that has unused slots left: the last in the CPU's order
 * of shards. shard_other() gives each CPU another order, so CPUs rarely choose the same shard.
 *
 * If no slot is unused any more, arena_take_fresh() stores in `filling` a number that is not the
 * index of a shard. That ends its loop, and later calls skip the loop.
 *
 * If arena_has() finds too few free slots, there was a moment at which that was true. It adds up
 * the fresh slots and the stacks, and then finds each top as it was. So no stack has changed in
 * between: a take changes the count in the top, and a put changes the slot. The number of fresh
 * slots only falls. Each top is read again by a CAS that changes nothing, because a load might
 * return an older value: if one thread puts slot A back, and another then takes the last fresh slot
 * B by a relaxed CAS, a third thread that sees that B is taken could still load a top without A.
 *
 * A thread changes shard->fresh when it takes a fresh slot, and gives the handle of the timer away
 * later. So whoever has the handle sees the change, even by a relaxed load.
 *
 * shard_note() takes the larger of two words for the newer: the high bits count takes, and between
 * two takes the depth in the low bits only grows. It looks at the sign of the difference, because
 * the count wraps.
 *
 * Labels: [free] arena_put → arena_take: the previous user is done with the slot.
 */
#include "timer/arena.h"

#include "base/cpu.h"
#include "base/invariant.h"
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
 * The manual promises that memory for at most 256 timers per CPU is in use beyond the most timers
 * that were live at once. The sum is halved, because the number of shards is a power of two, which
 * can be nearly twice the number of CPUs.
 */
_Static_assert(ARENA_LEAVE + 2 * (ARENA_LOOK - 1) <= 256 / 2, "memory follows what lives");
#define ARENA_SHARDS_MAX BOARD_SHARDS_MAX
/* How many bits of a stack's top word count the slots that were taken from it. */
#define TAKES_BITS (64 - TIMER_SLOT_BITS)
_Static_assert(BOARD_DEPTH_BITS == TIMER_SLOT_BITS, "the board shows takes and depth alike");
/* A hub has several shards only if each of them has at least so many slots. */
#ifndef ARENA_SHARD_SLOTS_MIN
#define ARENA_SHARD_SLOTS_MIN 256
#endif
/*
 * How many timers share a cache line. Each shard has a multiple of this number of slots, so that no
 * line belongs to two shards.
 */
#define ARENA_LINE_SLOTS ((uint32_t)(CACHE_LINE_BYTES / sizeof(struct timer)))
/*
 * How many slots arena_put_many() sorts by their shards at once, in an array on the thread's stack.
 */
#ifndef ARENA_PUT_BATCH
#define ARENA_PUT_BATCH 256
#endif

/*
 * Makes the link that a free slot holds: the slot below it on the stack of free slots, and how many
 * slots are below this one.
 */
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
 * Returns the generation with which a new hub's first timers begin. It is far from that of any
 * other hub, so that a hub rejects handles of another.
 */
static uint64_t arena_first_generation(void)
{
	static atomic_u64 opened;
	uint64_t serial = u64_fetch_add_relaxed(&opened, 1); /* relaxed: only uniqueness matters */
	uint64_t generation = 0;

	/* Reverse the bits of the serial number, so that small numbers lie far apart. */
	for (unsigned bit = 0; bit < TIMER_GENERATION_BITS; bit++)
		generation |= (serial >> bit & 1) << (TIMER_GENERATION_BITS - 1 - bit);
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

	invariant(capacity > 0 && capacity <= TIMER_SLOTS_MAX);
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
		/* Relaxed is enough: no other thread knows the arena yet. */
		u64_store_relaxed(&arena->shards[i].fresh, fresh_make(begin, end));
	}
	return 0;
}

void arena_close(struct arena *arena)
{
	memory_release(&arena->memory);
}

/*
 * Publishes for timerhub-top how many slots were taken from a stack so far (`takes`), and how many
 * are on the stack now (`depth`).
 */
static void shard_note(const struct arena_shard *shard, uint64_t takes, uint64_t depth)
{
	uint64_t newer = takes << BOARD_DEPTH_BITS | depth, before;

	if (!shard->notes)
		return;
	before = u64_load_relaxed(&shard->notes->stack); /* relaxed: only shown */
	/*
	 * Another thread may have stored a later state of the stack already. Replace the word only
	 * by a larger one: see the head of this file.
	 */
	while ((int64_t)(newer - before) > 0 &&
	       !u64_cas_relaxed(&shard->notes->stack, &before, newer)) {
	}
}

/*
 * Records that `count` slots were taken from a stack, which has `depth` slots left. `takes` is how
 * many were taken before.
 */
static void shard_taken(struct arena_shard *shard, uint64_t takes, unsigned count, uint64_t depth)
{
	/*
	 * `laps` counts how often the count of takes has wrapped. Relaxed is enough, because the
	 * number is only shown.
	 */
	if ((takes + count) >> TAKES_BITS != 0) {
		uint64_t laps = u64_fetch_add_relaxed(&shard->laps, 1) + 1;

		if (shard->notes)
			u64_store_relaxed(&shard->notes->laps, laps);
	}
	shard_note(shard, takes + count, depth);
}

/*
 * Tells whether `slot` is SLOT_NONE, the end of a stack. Aborts if it is neither that nor a slot of
 * the arena.
 */
static inline bool slot_is_none(const struct arena *arena, uint32_t slot)
{
	if (slot < arena->capacity)
		return false;
	invariant(slot == SLOT_NONE);
	return true;
}

/*
 * Prefetches the slot that is on top of the stack now, because the next timer will be armed in it.
 */
CPU_FETCHES void shard_expect_pop(const struct arena *arena, uint32_t slot)
{
	if (slot_is_none(arena, slot))
		return;
	timer_fetch_record(&arena->timers, slot);
	__builtin_prefetch(&arena->timers.pairs[slot], 1);
}

/* Takes the top slot of a shard's stack of free slots. Returns SLOT_NONE if the stack is empty. */
static inline __attribute__((always_inline)) uint32_t shard_pop(const struct arena *arena,
                                                                struct arena_shard *shard)
{
	/*
	 * The acquire lets this thread see the top slot's link to the slot below, and everything
	 * that the top slot's last user did.
	 */
	uint64_t top = u64_load_acquire(&shard->top); /* [free] */

	while (top_slot(top) != SLOT_NONE) {
		uint32_t slot = top_slot(top);
		uint64_t link;

		invariant(slot < arena->capacity);
		/*
		 * Relaxed is enough to load the link to the slot below, because the acquire load of
		 * shard->top came first.
		 */
		link = u64_load_relaxed(&arena->timers.cold[slot].data);
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
 * Takes up to `count` slots from a shard's stack in one step, and stores in *ret_taken how many.
 * Returns the first, which is still linked to the others, or SLOT_NONE.
 */
static uint32_t shard_pop_list(struct arena *arena, struct arena_shard *shard, unsigned count,
                               unsigned *ret_taken)
{
	/*
	 * Acquire: this thread sees how the slots on the stack are linked, and everything that
	 * their last users did.
	 */
	uint64_t top = u64_load_acquire(&shard->top); /* [free] */

	for (;;) {
		uint32_t below = top_slot(top), first = below;
		uint64_t link = 0;
		unsigned taken = 0;

		/*
		 * Relaxed is enough to load the links, because the acquire load of shard->top came
		 * first.
		 */
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

/*
 * Returns how many slots are on the stack whose top word is `top`. The number is right only if a
 * CAS of the top succeeds afterwards.
 */
static uint32_t stack_depth(const struct arena *arena, uint64_t top)
{
	uint32_t slot = top_slot(top);

	if (slot >= arena->capacity)
		return 0;
	return 1 + link_depth_below(u64_load_relaxed(&arena->timers.cold[slot].data));
}

/*
 * Tells whether a stack has so many free slots that another CPU may take some. True is only a
 * guess, but false is certain.
 */
static inline bool shard_has_surplus(const struct arena *arena, const struct arena_shard *shard)
{
	/* Acquire: this thread sees the link from the top to the slot below. */
	uint64_t top = u64_load_acquire(&shard->top); /* [free] */
	uint64_t link;

	if (top_slot(top) == SLOT_NONE)
		return false;
	test_point(TEST_POINT_TAKE_READ_TOP);
	/*
	 * Another thread may overwrite this link at any time. Acquire keeps the second load of
	 * shard->top, which checks whether the link was valid, after this load.
	 */
	link = u64_load_acquire(&arena->timers.cold[top_slot(top)].data);
	return link_depth_below(link) >= ARENA_LEAVE || u64_load_relaxed(&shard->top) != top;
}

/*
 * Pushes `count` slots onto a shard's stack of free slots in one step, the last one on top. If the
 * stack has more than `depth_max` slots already, returns false.
 */
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
		/*
		 * Release: the thread that next takes one of these slots sees everything that its
		 * last user did. [free]
		 */
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
	/*
	 * Relaxed is enough: a thread that knows a timer also sees that its slot is no longer
	 * unused (head of this file).
	 */
	uint64_t fresh = u64_load_relaxed(&shard->fresh);

	return fresh_end(fresh) - fresh_next(fresh);
}

/* Returns how many slots of a shard have ever had a timer. */
static uint64_t shard_used(const struct arena_shard *shard)
{
	return shard->end - shard->begin - shard_left(shard);
}

/*
 * Returns the top word of a shard's stack of free slots, and in *ret_depth how many slots were on
 * the stack at that moment.
 */
static uint64_t shard_read_top(const struct arena *arena, struct arena_shard *shard,
                               uint64_t *ret_depth)
{
	/* Acquire: this thread sees the link from the top to the slot below. */
	uint64_t top = u64_load_acquire(&shard->top); /* [free] */

	do {
		*ret_depth = stack_depth(arena, top);
		/*
		 * The CAS stores the same top again. If another thread has changed the top, the CAS
		 * fails, and the depth is computed anew.
		 */
	} while (!u64_cas_acq_rel(&shard->top, &top, top));
	return top;
}

/*
 * Returns which shard a CPU searches next when it has searched `i` shards already. Each CPU begins
 * with its own shard, `home`. CPUs with different homes search in different orders, so that they do
 * not all try the same shard.
 */
static uint32_t shard_other(uint32_t home, uint32_t i)
{
	return home ^ i;
}

/*
 * Takes a slot from a stack that has more than ARENA_LEAVE free slots. Returns SLOT_NONE if there
 * is no such stack. Not inlined, because it is seldom called.
 */
static __attribute__((noinline)) uint32_t arena_take_surplus(struct arena *arena, uint32_t home)
{
	/*
	 * Begin where the last search succeeded. Relaxed is enough: a wrong value costs only a
	 * longer search.
	 */
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

/* Takes a slot of one shard that was never used. Returns SLOT_NONE if all have been used. */
static inline __attribute__((always_inline)) uint32_t arena_take_fresh_of(struct arena *arena,
                                                                          uint32_t home,
                                                                          uint32_t index)
{
	struct arena_shard *shard = &arena->shards[index];
	uint64_t fresh = u64_load_relaxed(&shard->fresh);
	bool looked = false;

	while (fresh_next(fresh) < fresh_end(fresh)) {
		/*
		 * The CPUs for which this shard is the home take its unused slots from the lower
		 * end, and other CPUs from the upper end. So two CPUs rarely use slots in one cache
		 * line.
		 */
		bool own = index == home;
		uint64_t slot = own ? fresh_next(fresh) : fresh_end(fresh) - 1;
		uint64_t left = own ? fresh_make(slot + 1, fresh_end(fresh))
		                    : fresh_make(fresh_next(fresh), slot);

		/*
		 * At each ARENA_LOOK-th fresh slot, first search the stacks for a slot that was
		 * used before, so that memory grows only with the number of live timers.
		 */
		if (slot % ARENA_LOOK == 0 && !looked) {
			uint32_t used = arena_take_surplus(arena, home);

			if (used != SLOT_NONE)
				return used;
			looked = true;
		}
		/* Relaxed is enough: nobody has written to the slot, so nothing can be missed. */
		if (!u64_cas_relaxed(&shard->fresh, &fresh, left))
			continue;
		if (shard->notes)
			(void)u64_fetch_add_relaxed(&shard->notes->used, 1);
		/*
		 * In a free slot, the deadline "never" means that it has no schedule entry. Relaxed
		 * is enough, because only this thread uses the slot.
		 */
		u64_store_relaxed(&arena->timers.pairs[slot].deadline_ns, TIMER_NEVER_NS);
		return (uint32_t)slot;
	}
	return SLOT_NONE;
}

/*
 * Chooses the shard from which a CPU takes unused slots next. `home` is the CPU's own shard, and
 * `last` is the one that it has used up. Returns ARENA_SHARDS_MAX if no slot is unused.
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
	/* Otherwise choose the middle of the longest sequence of wholly unused shards. */
	if (longest > 0)
		return middle;
	return any != home ? any : ARENA_SHARDS_MAX;
}

/*
 * Takes a slot that was never used, or returns SLOT_NONE. A CPU uses up its own shard, `home`,
 * first, then one other shard, and so on.
 */
static uint32_t arena_take_fresh(struct arena *arena, uint32_t home)
{
	struct arena_shard *own = &arena->shards[home];
	/*
	 * Relaxed is enough: an old value names a shard that has no unused slots any more, and then
	 * the search goes on with the next shard.
	 */
	uint64_t filling = u64_load_relaxed(&own->filling);

	/*
	 * Try two shards at most. If other CPUs have used up both, the caller goes on to
	 * arena_take_last(), which searches all shards.
	 */
	for (unsigned tries = 0; tries < 2 && filling <= arena->shard_mask; tries++) {
		uint32_t index = shard_other(home, (uint32_t)filling);
		uint32_t slot = arena_take_fresh_of(arena, home, index);
		uint32_t next;

		if (slot != SLOT_NONE)
			return slot;
		next = shard_other(home, arena_next_shard(arena, home, index));
		if (u64_cas_relaxed(&own->filling, &filling, next))
			filling = next;
	}
	return SLOT_NONE;
}

/*
 * Tells whether at least `count` slots are free. True is only a guess, because other threads take
 * slots meanwhile. False is certain: fewer were free at one moment of the call.
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
			/* Acquire: this thread sees the link from the top to the slot below. */
			tops[i] = u64_load_acquire(&arena->shards[i].top); /* [free] */
			found += stack_depth(arena, tops[i]);
			test_point(TEST_POINT_TAKE_READ_TOP);
		}
		/*
		 * Check that no stack has changed meanwhile: then there was a moment at which no
		 * more slots than this sum were free.
		 */
		changed = false;
		for (uint32_t i = 0; i <= arena->shard_mask && found < count; i++)
			changed |= tops[i] != shard_read_top(arena, &arena->shards[i], &depth);
	} while (changed);
	return found >= count;
}

/*
 * Takes a free slot from whichever shard has one. Returns SLOT_NONE only if there was a moment
 * during the call at which no slot was free.
 */
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

/*
 * Takes a slot when arena_take() has found none on its CPU's own stack, which is rare. Not inlined,
 * because otherwise arena_take() would save registers in each call.
 */
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
	/*
	 * Until a timer is armed in it, a slot from arena_take_list() holds the link to the next
	 * one in `data`. Relaxed is enough, because nobody but the caller uses the slot.
	 */
	return link_below(u64_load_relaxed(&arena->timers.cold[slot].data));
}

/* Puts back the first `count` slots of a list that begins with `slot`. */
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
	/*
	 * If this stack had too few slots, find out whether enough others are free before taking
	 * more, because a fresh slot's memory would stay in use even if the slot was given back.
	 */
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

/*
 * Returns the index of the shard to which a slot belongs, by a multiplication that is exact for
 * 32-bit numbers (D. Lemire et al., "Faster remainder by direct computation", 2019).
 */
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

/* Returns the index of the shard to which a slot belongs. Aborts if the slot is out of range. */
static uint32_t slot_home(const struct arena *arena, uint32_t slot)
{
	uint32_t shard = slot_shard(arena, slot);

	invariant(shard <= arena->shard_mask);
	return shard;
}

/*
 * Puts at most ARENA_PUT_BATCH slots back to the shards to which they belong. They are sorted by
 * shard first, so that each shard's stack is changed only once.
 */
static void arena_send_home(struct arena *arena, const uint32_t *slots, unsigned count)
{
	uint16_t ends[ARENA_SHARDS_MAX + 1] = { 0 };
	uint32_t sorted[ARENA_PUT_BATCH];
	unsigned begin = 0;

	for (unsigned i = 0; i < count; i++)
		ends[slot_home(arena, slots[i]) + 1]++;
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
		/*
		 * Relaxed is enough. A thread takes a fresh slot before it can give anybody the
		 * handle of the timer in it, so this load finds all slots whose handles are known.
		 */
		uint64_t fresh = u64_load_relaxed(&shard->fresh);

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

		invariant(shard_left(shard) <= shard->end - shard->begin);
		taken += top_takes(shard_read_top(arena, shard, &depth));
		/*
		 * shard->top counts takes in TAKES_BITS bits only, and `laps` says how often they
		 * have overflowed. Relaxed is enough, because the total is only shown.
		 */
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
