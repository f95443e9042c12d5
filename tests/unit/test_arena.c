/* SPDX-License-Identifier: MIT */
/*
 * What the arena does for many CPUs: each keeps to its own slots, and memory follows what lives.
 * That each free slot is handed out once, that nobody is refused while one is free, and the counts
 * are the simulation's.
 */
#include "harness.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/test_point.h"
#include "timer/arena.h"

static long cpus = 16;

long __real_sysconf(int name);
long __wrap_sysconf(int name);

/* clang's thread sanitizer calls this before it can run what it has instrumented. */
#ifdef __clang__
__attribute__((disable_sanitizer_instrumentation))
#endif
long __wrap_sysconf(int name)
{
	return name == _SC_NPROCESSORS_CONF ? cpus : __real_sysconf(name);
}

/* The takes have 38 bits in the word of the stack. */
TEST(takes_are_counted_beyond_their_bits, 60)
{
	struct arena arena;
	uint64_t taken;
	uint32_t slots[3];
	unsigned count;

	expect_eq(arena_open(&arena, 8, NULL), 0);
	for (unsigned i = 0; i < COUNT_OF(slots); i++)
		slots[i] = arena_take(&arena, 0);
	arena_put_many(&arena, 0, slots, COUNT_OF(slots));
	u64_store_relaxed(&arena.shards[0].top,
	                  u64_load_relaxed(&arena.shards[0].top) | ~TIMER_SLOT_MASK);
	taken = arena_count(&arena).taken;
	slots[0] = arena_take(&arena, 0);
	expect_eq(arena_count(&arena).taken, taken + 1);
	expect_eq(arena_take_list(&arena, 0, 2, &count), slots[1]);
	expect_eq(arena_count(&arena).taken, taken + 3);
	arena_close(&arena);
}

static void put_all(struct arena *arena, unsigned cpu, const uint32_t *slots, uint32_t count,
                    bool at_once)
{
	if (at_once)
		arena_put_many(arena, cpu, slots, count);
	for (uint32_t i = 0; i < count && !at_once; i++)
		arena_put(arena, cpu, slots[i]);
}

/* A CPU keeps a few of the slots that it frees. The others return to the CPUs that prefer them. */
TEST(slots_put_by_one_come_home, 20)
{
	enum { SLOTS = 16384, KEPT = 256, BATCH = 64 };
	uint32_t slots[SLOTS];
	struct arena arena;

	expect_eq(arena_open(&arena, SLOTS, NULL), 0);
	for (unsigned round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < SLOTS; i++)
			slots[i] = arena_take(&arena, i % 5);
		for (uint32_t i = 0; i < SLOTS; i += BATCH)
			put_all(&arena, 0, slots + i, BATCH, round == 1);
		for (uint32_t i = 0; i < SLOTS - 16 * KEPT; i++) {
			slots[i] = arena_take(&arena, i % 16);
			if (i >= 16 * KEPT) /* CPU 0 has used up what it has kept */
				expect_eq(slots[i] / (SLOTS / 16), i % 16);
		}
		for (uint32_t i = SLOTS - 16 * KEPT; i < SLOTS; i++)
			slots[i] = arena_take(&arena, i % 16);
		put_all(&arena, 0, slots, SLOTS, round == 0);
	}
	arena_close(&arena);
}

/* CPUs take all slots, in turn if `pace` is 1. Returns how many groups of `part` they share. */
static unsigned shared_by_threads(unsigned threads, unsigned pace, uint32_t part)
{
	enum { SLOTS = 10001 };
	uint32_t users[SLOTS] = { 0 }, slot; /* a bit for each */
	struct arena arena;
	unsigned shared = 0;

	expect_eq(arena_open(&arena, SLOTS, NULL), 0);
	for (unsigned i = 0;; i++) {
		unsigned cpu = i % pace < pace - 1 ? i % pace % threads : i / pace % threads;

		slot = arena_take(&arena, cpu);
		if (slot == SLOT_NONE)
			break;
		users[slot / part] |= 1u << cpu % 16;
	}
	arena_close(&arena);
	for (uint32_t i = 0; i < SLOTS; i++)
		shared += (users[i] & (users[i] - 1)) != 0;
	return shared;
}

/* CPUs share few pages, because a random access may also fetch other cache lines of its page. */
TEST(few_pages_have_slots_of_two_cpus, 20)
{
	expect_le(shared_by_threads(2, 1, 256), 5);
	expect_le(shared_by_threads(3, 1, 256), 10);
	expect_le(shared_by_threads(4, 1, 256), 12);
}

TEST(cpus_get_slots_of_different_lines, 20)
{
	for (unsigned threads = 2; threads <= 16; threads++)
		for (unsigned pace = 1; pace <= 32; pace++) {
			expect_context("threads, pace", threads, pace);
			expect_le(shared_by_threads(threads, pace, 4), 10001 / 4 / 3);
		}
}

/* A CPU takes the slot again that it has put back last, because that slot is in its cache. */
TEST(slot_put_is_taken_again_on_that_cpu, 20)
{
	uint32_t slots[100];
	struct arena arena;
	uint64_t top;

	expect_eq(arena_open(&arena, 4096, NULL), 0);
	for (unsigned i = 0; i < COUNT_OF(slots); i++)
		slots[i] = arena_take(&arena, 0);
	top = u64_load_relaxed(&arena.shards[0].top);
	for (unsigned i = 0; i < COUNT_OF(slots); i++) {
		arena_put(&arena, 1, slots[i]);
		expect_eq(arena_take(&arena, 1), slots[i]);
	}
	expect_eq(u64_load_relaxed(&arena.shards[0].top), top);
	arena_close(&arena);
}

/* ---- memory follows what lives ---- */

enum { MOVES_NEVER, MOVES_ROUND, MOVES_AT_RANDOM, MOVES_COUNT };

/* A caller takes and puts back bursts of slots, on CPUs that `moves` chooses. */
struct caller {
	struct arena arena;
	struct dice dice;
	uint32_t *held; /* slots in use */
	uint32_t count, most;
	unsigned moves;
	unsigned cpu;
};

static unsigned next_cpu(struct caller *caller)
{
	if (caller->moves == MOVES_ROUND)
		caller->cpu++;
	if (caller->moves == MOVES_AT_RANDOM)
		caller->cpu = (unsigned)dice_below(&caller->dice, (uint64_t)cpus);
	return caller->cpu;
}

static void take_burst(struct caller *caller, uint32_t count, unsigned batch)
{
	while (caller->count < count) {
		unsigned wanted = count - caller->count < batch ? count - caller->count : batch;
		unsigned taken = wanted;
		uint32_t slot = wanted == 1 ? arena_take(&caller->arena, next_cpu(caller))
		                            : arena_take_list(&caller->arena, next_cpu(caller),
		                                              wanted, &taken);

		expect_lt(slot, caller->arena.capacity);
		for (unsigned i = 0; i < taken; i++) {
			caller->held[caller->count++] = slot;
			slot = i + 1 < taken ? arena_next(&caller->arena, slot) : SLOT_NONE;
		}
	}
	caller->most = count > caller->most ? count : caller->most;
	/* the law */
	expect_le(arena_count(&caller->arena).in_use_max, caller->most + 256 * cpus);
}

/* Puts back the slots that were taken last, or if `mixed` any. */
static void put_burst(struct caller *caller, uint32_t count, unsigned batch, bool mixed)
{
	while (caller->count > count) {
		unsigned part = caller->count - count < batch ? caller->count - count : batch;

		for (unsigned i = 0; i < part; i++) {
			uint32_t last = caller->count - i - 1;
			uint32_t other =
				mixed ? (uint32_t)dice_below(&caller->dice, last + 1) : last;
			uint32_t slot = caller->held[other];

			caller->held[other] = caller->held[last];
			caller->held[last] = slot;
		}
		caller->count -= part;
		put_all(&caller->arena, next_cpu(caller), caller->held + caller->count, part,
		        batch > 1);
	}
}

static const long machines[] = { 1, 2, 3, 6, 16, 17, 33, 64, 100 };

/* Random bursts, of which some are larger than a CPU's shard. */
TEST(memory_follows_what_lives, 60)
{
	enum { LIVE = 32768 };
	unsigned rounds = scaled(5 * COUNT_OF(machines));
	struct caller caller = { .held = calloc(LIVE, sizeof(uint32_t)) };
	unsigned bits;

	expect(caller.held);
	for (unsigned round = 0; round < rounds; round++) {
		cpus = machines[round % COUNT_OF(machines)];
		caller.dice = dice_new(6000 + round);
		caller.most = caller.count = 0;
		bits = 13 + (unsigned)dice_below(&caller.dice, 7);
		expect_eq(arena_open(&caller.arena, 1u << bits, NULL), 0);
		for (unsigned burst = 0; burst < 50; burst++) {
			uint32_t most = 1 + (uint32_t)dice_magnitude(&caller.dice,
			                                             bits < 16 ? bits - 1 : 15);
			unsigned batches[2] = { 1, 1 };

			expect_context("round, burst", round, burst);
			for (unsigned i = 0; i < 2; i++)
				if (dice_below(&caller.dice, 2) == 0)
					batches[i] = 1 + (unsigned)dice_magnitude(&caller.dice, 9);
			caller.moves = (unsigned)dice_below(&caller.dice, MOVES_COUNT);
			take_burst(&caller, most, batches[0]);
			caller.moves = (unsigned)dice_below(&caller.dice, MOVES_COUNT);
			put_burst(&caller, (uint32_t)dice_below(&caller.dice, caller.count + 1),
			          batches[1], dice_below(&caller.dice, 2) == 0);
		}
		arena_close(&caller.arena);
	}
	cpus = 16;
	free(caller.held);
}

static struct {
	struct arena arena;
	uint32_t slot; /* taken by another thread; SLOT_NONE */
} busy;

/* Another thread takes the top slot. Its data, read as a link, say that no slot lies below it. */
static void take_top(enum test_point point)
{
	if (point != TEST_POINT_TAKE_READ_TOP || busy.slot != SLOT_NONE)
		return;
	test_point_hook = NULL;
	busy.slot = arena_take(&busy.arena, 0);
	test_point_hook = take_top;
	if (busy.slot != SLOT_NONE)
		u64_store_relaxed(&busy.arena.timers.cold[busy.slot].data, 7);
}

/* Memory does not grow, although another thread takes the top slot whenever a stack is searched. */
TEST(memory_follows_what_lives_beside_a_busy_cpu, 60)
{
	enum { LIVE = 5000 };
	uint32_t slots[LIVE];

	cpus = 2;
	expect_eq(arena_open(&busy.arena, 1 << 20, NULL), 0);
	busy.slot = SLOT_NONE;
	for (unsigned burst = 0; burst < 5; burst++) {
		for (uint32_t i = 0; i < LIVE; i++) {
			slots[i] = arena_take(&busy.arena, burst > 0);
			if (busy.slot != SLOT_NONE)
				arena_put(&busy.arena, 0, busy.slot);
			busy.slot = SLOT_NONE;
		}
		put_all(&busy.arena, 0, slots, LIVE, false);
		expect_le(arena_count(&busy.arena).in_use_max, 1 + LIVE + 256 * cpus);
		test_point_hook = take_top;
	}
	test_point_hook = NULL;
	cpus = 16;
	arena_close(&busy.arena);
}

/* A list of more slots than are free uses none for the first time. */
TEST(refused_list_takes_no_memory, 20)
{
	enum { SLOTS = 20000, LIVE = 9000 };
	struct caller caller = { .held = calloc(SLOTS, sizeof(uint32_t)) };
	unsigned taken;

	expect(caller.held);
	for (unsigned machine = 0; machine < COUNT_OF(machines); machine++) {
		cpus = machines[machine];
		expect_context("cpus", (uint64_t)cpus, 0);
		caller.dice = dice_new(7000 + machine);
		caller.moves = MOVES_AT_RANDOM;
		caller.most = caller.count = 0;
		expect_eq(arena_open(&caller.arena, SLOTS, NULL), 0);
		take_burst(&caller, LIVE, 7);
		for (uint32_t live = LIVE; live > 0; live -= 1000) {
			put_burst(&caller, live, 5, true);
			expect_eq(arena_take_list(&caller.arena, next_cpu(&caller),
			                          SLOTS + 1 - live, &taken),
			          SLOT_NONE);
			expect_le(arena_count(&caller.arena).in_use_max, LIVE + 256 * cpus);
			expect_eq(arena_count(&caller.arena).in_use, live);
		}
		/* but all that are free are given */
		take_burst(&caller, SLOTS, SLOTS);
		put_burst(&caller, 0, 3, true);
		arena_close(&caller.arena);
	}
	cpus = 16;
	free(caller.held);
}

/* A slot that is put back can be taken, whatever another thread writes over the link below it. */
TEST(slot_put_is_not_lost_whatever_lies_below, 20)
{
	for (uint64_t depth = 0; depth <= UINT32_MAX; depth = depth * 2 + 1) {
		for (uint64_t way = 0; way < 6; way++) {
			struct arena arena;
			uint32_t slots[2];

			expect_context("depth, way", depth, way);
			expect_eq(arena_open(&arena, 2, NULL), 0);
			slots[0] = arena_take(&arena, 0);
			slots[1] = arena_take(&arena, 0);
			arena_put(&arena, 0, slots[0]);
			u64_store_relaxed(&arena.timers.cold[slots[0]].data, (depth - way / 2)
			                                                             << 32);
			if (way % 2)
				arena_put(&arena, 0, slots[1]);
			else
				arena_put_many(&arena, 0, &slots[1], 1);
			expect_eq(arena_take(&arena, 0), slots[1]);
			arena_close(&arena);
		}
	}
}

TEST(two_hubs_never_have_the_same_generation, 20)
{
	struct arena arenas[8];

	for (unsigned i = 0; i < COUNT_OF(arenas); i++)
		expect_eq(arena_open(&arenas[i], 4, NULL), 0);
	for (unsigned i = 0; i < COUNT_OF(arenas); i++)
		for (unsigned j = 0; j < i; j++) {
			uint64_t a = arenas[i].timers.first_generation,
				 b = arenas[j].timers.first_generation;

			/* the first generations are a billion apart, so handles differ for long */
			expect_lt(UINT64_C(1) << 30, a > b ? a - b : b - a);
		}
	for (unsigned i = 0; i < COUNT_OF(arenas); i++)
		arena_close(&arenas[i]);
}
