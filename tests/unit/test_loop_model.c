/* SPDX-License-Identifier: MIT */
/*
 * A loop in virtual time against an array, sorted in each turn, with random calls between turns and
 * in callbacks; a turn takes no time or up to seconds. Each due timeout is called once, in the
 * right turn, in order, never early. With the program's clock a deadline is exact at once; else it
 * is set at the loop's next reading, plus the delay: in a turn, in settle, in update, in timeout if
 * something was set, before the 65th set since the last.
 */
#include "loop_rig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUTS 10000
#define NEVER UINT64_MAX
#define HOLE TIMEOUTS
#define CALLBACKS_MAX 256

struct entry {
	struct timerhub_timeout timeout;
	bool is_added;
	/* set since the loop last read the clock */
	bool is_fresh;
	bool is_set_in_turn; /* true if a callback of the turn in progress has set the timeout */
	uint64_t delay_ns;   /* delay of the timeout; valid while is_fresh */
	/* NEVER: not set; NEVER - 1: before a reading */
	uint64_t deadline_ns;
	uint64_t called_ns; /* clock value at the call that set the timeout */
	/* earliest permitted clock value: called_ns + delay_ns, or the deadline of set_at */
	uint64_t least_ns;
};

struct bench {
	struct timerhub_loop *loop;
	enum loop_rig_kind kind;
	struct dice dice;
	uint64_t now_ns;
	uint64_t turn_began_ns; /* clock value that the loop read last, apart from a 65th set */
	bool is_turning;
	uint64_t turn_ns; /* clock value that the turn in progress has read */
	unsigned called;  /* number of callbacks called in the turn in progress */
	uint32_t fresh[TIMERHUB_LOOP_FRESH_MAX];
	unsigned fresh_count;
	struct entry *due[TIMEOUTS]; /* timeouts that are due in the present turn, sorted */
	uint64_t due_ns[TIMEOUTS];   /* deadlines of the timeouts in `due` when the turn began */
	unsigned due_count, due_next;
	uint64_t calls;
	struct entry entries[TIMEOUTS];
};

static struct bench *bench;

/* ---- the model ---- */

static void model_read_clock(void)
{
	for (unsigned i = 0; i < bench->fresh_count; i++) {
		struct entry *entry = &bench->entries[bench->fresh[i]];

		if (bench->fresh[i] == HOLE || !entry->is_fresh)
			continue;
		entry->is_fresh = false;
		entry->deadline_ns = bench->now_ns + entry->delay_ns;
		if (entry->deadline_ns < bench->now_ns || entry->deadline_ns == NEVER)
			entry->deadline_ns = NEVER - 1;
		/* law 1: from least_ns, by at most the turn's length */
		expect_le(entry->least_ns, entry->deadline_ns);
		expect_le(entry->deadline_ns - entry->least_ns,
		          bench->now_ns - bench->turn_began_ns);
	}
	bench->fresh_count = 0;
}

/* Returns the clock value from which the delay of a new timeout counts. */
static uint64_t model_base_ns(void)
{
	return bench->kind == LOOP_RIG_OWN_CLOCK ? bench->loop->front.base_ns : bench->now_ns;
}

static bool model_is_listed(const struct entry *entry)
{
	uint32_t index = (uint32_t)(entry - bench->entries);

	for (unsigned i = 0; i < bench->fresh_count; i++)
		if (bench->fresh[i] == index)
			return true;
	return false;
}

/* Takes a timeout out of `fresh`, so that the next clock reading no longer moves its deadline. */
static void model_forget(struct entry *entry)
{
	uint32_t index = (uint32_t)(entry - bench->entries);

	for (unsigned i = 0; i < bench->fresh_count; i++)
		if (bench->fresh[i] == index)
			/* the loop, too, reuses this element only after its next reading */
			bench->fresh[i] = HOLE;
}

/* If the program gives the clock, a deadline is exact at once. */
static void model_set_exactly(struct entry *entry, uint64_t deadline_ns)
{
	model_forget(entry);
	entry->is_fresh = false;
	entry->deadline_ns = entry->least_ns = deadline_ns;
	entry->called_ns = bench->now_ns;
	entry->is_set_in_turn = bench->is_turning;
	expect_eq(timerhub_timeout_deadline(&entry->timeout), deadline_ns);
}

static void model_set(struct entry *entry, uint64_t delay_ns)
{
	if (bench->kind != LOOP_RIG_OWN_CLOCK) {
		model_set_exactly(entry, bench->now_ns + delay_ns);
		return;
	}
	if (!model_is_listed(entry)) {
		if (bench->fresh_count == TIMERHUB_LOOP_FRESH_MAX)
			model_read_clock();
		bench->fresh[bench->fresh_count++] = (uint32_t)(entry - bench->entries);
	}
	entry->is_fresh = true;
	entry->delay_ns = delay_ns;
	entry->called_ns = bench->now_ns;
	entry->least_ns = bench->now_ns + delay_ns;
	if (entry->least_ns < bench->now_ns || entry->least_ns == NEVER)
		entry->least_ns = NEVER - 1;
	entry->deadline_ns = NEVER - 1;
	entry->is_set_in_turn = bench->is_turning;
}

static int compare_due(const void *a, const void *b)
{
	const struct entry *const *left = a, *const *right = b;

	return ((*left)->deadline_ns > (*right)->deadline_ns) -
	       ((*left)->deadline_ns < (*right)->deadline_ns);
}

static void model_begin_turn(void)
{
	model_read_clock();
	bench->is_turning = true;
	bench->turn_ns = bench->now_ns;
	bench->called = 0;
	bench->due_count = bench->due_next = 0;
	for (uint32_t i = 0; i < TIMEOUTS; i++) {
		struct entry *entry = &bench->entries[i];

		entry->is_set_in_turn = false;
		if (entry->deadline_ns <= bench->now_ns)
			bench->due[bench->due_count++] = entry;
	}
	qsort(bench->due, bench->due_count, sizeof(bench->due[0]), compare_due);
	for (unsigned i = 0; i < bench->due_count; i++)
		bench->due_ns[i] = bench->due[i]->deadline_ns;
}

/* Returns the deadline of the timeout that the turn must call next, or NEVER. */
static uint64_t model_next_ns(void)
{
	for (; bench->due_next < bench->due_count; bench->due_next++) {
		const struct entry *entry = bench->due[bench->due_next];

		if (!entry->is_set_in_turn && !entry->is_fresh &&
		    entry->deadline_ns == bench->due_ns[bench->due_next])
			return entry->deadline_ns;
	}
	return NEVER;
}

/* ---- operations ---- */

static void on_timeout(struct timerhub_loop *loop, struct timerhub_timeout *timeout);

static uint64_t random_delay_ns(void)
{
	struct dice *dice = &bench->dice;

	switch (dice_below(dice, 8)) {
	case 0:
		return dice_below(dice, 4);
	case 1:
		return dice_magnitude(dice, 40);
	case 2:
		return dice_boundary(dice);
	case 3:
		return dice_magnitude(dice, 64);
	case 4:
		return SEC / 10;
	default:
		return 3 * SEC;
	}
}

static void op_set(struct entry *entry)
{
	uint64_t delay_ns = random_delay_ns();
	uint64_t most_ns = NEVER - 1 - model_base_ns();
	int result = timerhub_timeout_set(bench->loop, &entry->timeout, delay_ns);

	if (!entry->is_added) {
		expect_eq(result, -EINVAL);
	} else if (delay_ns > most_ns) {
		expect_eq(result, -ERANGE);
	} else {
		expect_eq(result, 0);
		model_set(entry, delay_ns);
	}
}

static void op_set_at(struct entry *entry)
{
	struct dice *dice = &bench->dice;
	uint64_t deadline_ns = dice_one_in(dice, 2) ? bench->now_ns + random_delay_ns()
	                                            : dice_below(dice, bench->now_ns + 1);
	int result = timerhub_timeout_set_at(bench->loop, &entry->timeout, deadline_ns);

	if (!entry->is_added) {
		expect_eq(result, -EINVAL);
	} else if (deadline_ns == NEVER) {
		expect_eq(result, -ERANGE);
	} else {
		expect_eq(result, 0);
		model_set_exactly(entry, deadline_ns);
	}
}

static void op_stop(struct entry *entry)
{
	bool was_set = entry->deadline_ns != NEVER;
	int result = timerhub_timeout_stop(bench->loop, &entry->timeout);

	expect_eq(result, entry->is_added ? (int)was_set : -EINVAL);
	entry->is_fresh = false;
	entry->deadline_ns = NEVER;
}

static void op_add(struct entry *entry)
{
	int result = timerhub_timeout_add(bench->loop, &entry->timeout, on_timeout);

	expect_eq(result, entry->is_added ? -EEXIST : 0);
	entry->is_added = true;
}

static void op_remove(struct entry *entry)
{
	int result = timerhub_timeout_remove(bench->loop, &entry->timeout);

	expect_eq(result, entry->is_added ? 0 : -EINVAL);
	model_forget(entry);
	entry->is_added = entry->is_fresh = false;
	entry->deadline_ns = NEVER;
	/* After timerhub_timeout_remove(), the library must not write to the timeout. */
	memset(&entry->timeout, 0, sizeof(entry->timeout));
}

static void op_random(void)
{
	struct entry *entry = &bench->entries[dice_below(&bench->dice, TIMEOUTS)];
	uint64_t roll = dice_below(&bench->dice, 100);

	if (roll < 60)
		op_set(entry);
	else if (roll < 72)
		op_stop(entry);
	else if (roll < 84)
		op_set_at(entry);
	else if (roll < 92)
		op_add(entry);
	else
		op_remove(entry);
	expect_eq(timerhub_timeout_is_set(&entry->timeout), entry->deadline_ns != NEVER);
	expect_eq(timerhub_timeout_is_added(&entry->timeout), entry->is_added);
}

static void random_time_passes(void)
{
	struct dice *dice = &bench->dice;
	/* the time of a manual loop stands still in its callbacks */
	if (bench->is_turning && bench->kind == LOOP_RIG_MANUAL) {
		expect_eq(timerhub_loop_advance(bench->loop, bench->now_ns + 1), -EBUSY);
		return;
	}
	uint64_t passed_ns = dice_one_in(dice, 8)   ? dice_magnitude(dice, 33)
	                     : dice_one_in(dice, 4) ? dice_magnitude(dice, 20)
	                                            : 0;

	/* The largest time, where the clock stops, is tested too. */
	bench->now_ns =
		passed_ns < NEVER - 1 - bench->now_ns ? bench->now_ns + passed_ns : NEVER - 1;
	loop_rig_move(bench->loop, bench->now_ns);
}

static void on_timeout(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	struct entry *entry = (struct entry *)(void *)timeout;

	expect(loop == bench->loop);
	expect(bench->is_turning);
	expect(entry->is_added);
	/* the timeout is the next due timeout */
	expect_eq(entry->deadline_ns, model_next_ns());
	expect(!entry->is_set_in_turn);
	expect_le(entry->least_ns, bench->turn_ns);
	expect_eq(timerhub_timeout_is_set(timeout), 0);
	expect_eq(timerhub_loop_due(loop), entry->deadline_ns);
	entry->deadline_ns = NEVER;
	bench->called++;
	bench->calls++;
	expect_le(bench->called, CALLBACKS_MAX);
	if (dice_one_in(&bench->dice, 4))
		random_time_passes();
	for (uint64_t i = dice_below(&bench->dice, 4); i > 0; i--)
		op_random();
	if (dice_one_in(&bench->dice, 3))
		op_set(entry);
	if (dice_one_in(&bench->dice, 4)) { /* act on one of the next three due timeouts */
		uint64_t next = bench->due_next + dice_below(&bench->dice, 3);

		if (next < bench->due_count) {
			entry = bench->due[next];
			switch (dice_below(&bench->dice, 4)) {
			case 0:
				op_stop(entry);
				break;
			case 1:
				op_set(entry);
				break;
			case 2:
				op_set_at(entry);
				break;
			default:
				op_remove(entry);
			}
		}
	}
	/* the clock may have moved: the callbacks of a turn see one time */
	expect_eq(timerhub_loop_update(loop), bench->turn_ns);
	expect_eq(timerhub_loop_now(loop), bench->turn_ns);
}

static void bench_check_timeout(uint64_t timeout_ns)
{
	uint64_t first_ns = NEVER;

	expect_eq(timerhub_loop_now(bench->loop), bench->turn_began_ns);
	for (uint32_t i = 0; i < TIMEOUTS; i++)
		if (bench->entries[i].deadline_ns < first_ns)
			first_ns = bench->entries[i].deadline_ns;
	if (first_ns <= bench->turn_began_ns)
		expect_eq(timeout_ns, 0);
	else if (first_ns != NEVER)
		expect_le(timeout_ns, first_ns - bench->turn_began_ns);
}

/* Makes the loop and the model read the clock, as a program does right after it was blocked. */
static void bench_update(void)
{
	expect_eq(timerhub_loop_update(bench->loop), bench->now_ns);
	model_read_clock();
	bench->turn_began_ns = bench->now_ns;
	expect_eq(timerhub_loop_now(bench->loop), bench->now_ns);
	expect_eq(timerhub_loop_due(bench->loop), NEVER);
}

/* Asks how long the program may block, while timeouts are set that no turn has handled yet. */
static void bench_ask(void)
{
	uint64_t block_ns;
	int ms;

	if (dice_one_in(&bench->dice, 2)) {
		expect_eq(timerhub_loop_settle(bench->loop, &block_ns), 0);
		model_read_clock();
		bench->turn_began_ns = bench->now_ns;
	} else {
		/* if there is something to schedule, or on a manual hub */
		bool reads = bench->kind != LOOP_RIG_OWN_CLOCK || bench->fresh_count > 0 ||
		             bench->loop->listed_count > 0;

		block_ns = timerhub_loop_timeout(bench->loop);
		if (reads) {
			model_read_clock();
			bench->turn_began_ns = bench->now_ns;
		}
	}
	bench_check_timeout(block_ns);
	expect_eq(timerhub_loop_timeout(bench->loop), block_ns);
	ms = timerhub_loop_timeout_ms(bench->loop);
	if (block_ns == NEVER)
		expect_eq(ms, -1);
	else if (block_ns > (uint64_t)INT32_MAX * 1000000)
		expect_eq(ms, INT32_MAX);
	else
		expect_eq(ms, block_ns / 1000000 + (block_ns % 1000000 > 0));
}

static int count_one(struct timerhub_loop *loop, struct timerhub_timeout *timeout, void *context)
{
	unsigned *count = context;

	expect(loop == bench->loop);
	expect(((struct entry *)(void *)timeout)->is_added);
	return ++*count == TIMEOUTS ? 7 : 0;
}

static void bench_count(void)
{
	struct timerhub_loop_stats stats = { .size = sizeof(stats) };
	unsigned added = 0, set = 0, count = 0;
	uint64_t late = 0;
	int result;

	for (uint32_t i = 0; i < TIMEOUTS; i++) {
		added += bench->entries[i].is_added;
		set += bench->entries[i].deadline_ns != NEVER;
	}
	result = timerhub_loop_each(bench->loop, count_one, &count);
	expect_eq(result, added == TIMEOUTS ? 7 : 0);
	expect_eq(count, added);
	expect_eq(timerhub_loop_stats(bench->loop, &stats), 0);
	expect_eq(stats.added, added);
	expect_eq(stats.set, set);
	expect_eq(stats.callbacks, bench->calls);
	for (unsigned i = 0; i < TIMERHUB_LATENESS_BUCKETS; i++)
		late += stats.lateness[i];
	expect_eq(late, bench->calls);
}

static void bench_turn(void)
{
	int count;

	model_begin_turn();
	count = timerhub_loop_turn(bench->loop);
	expect_eq(count, bench->called);
	if (bench->called < CALLBACKS_MAX)
		expect_eq(model_next_ns(), NEVER); /* the loop has called all due timeouts */
	if (bench->called > 0) {
		/* a turn that has called callbacks reads the clock again at its end */
		uint64_t began_ns = bench->turn_began_ns;

		bench->turn_began_ns = bench->turn_ns;
		model_read_clock();
		bench->turn_began_ns = began_ns;
	}
	bench->is_turning = false;
	bench->turn_began_ns = bench->called > 0 ? bench->now_ns : bench->turn_ns;
	for (uint32_t i = 0; i < TIMEOUTS; i += 97)
		expect_eq(timerhub_timeout_deadline(&bench->entries[i].timeout),
		          bench->entries[i].deadline_ns);
	bench_check_timeout(timerhub_loop_timeout(bench->loop));
}

static void bench_open(uint64_t salt, enum loop_rig_kind kind)
{
	struct dice dice = dice_new(salt);

	bench = calloc(1, sizeof(*bench));
	expect(bench);
	bench->dice = dice;
	bench->now_ns = bench->turn_began_ns =
		dice_one_in(&dice, 3) ? dice_boundary(&bench->dice) : dice_magnitude(&dice, 60);
	bench->kind = kind;
	bench->loop = loop_rig_open_kind(kind, TIMEOUTS, bench->now_ns);
	for (uint32_t i = 0; i < TIMEOUTS; i++) {
		bench->entries[i].deadline_ns = NEVER;
		if (i % 8 != 0)
			op_add(&bench->entries[i]);
	}
}

TEST_LOOP(random_operations_agree_with_a_sorted_array, 240, 2 * LOOP_RIG_KINDS)
{
	unsigned operations = scaled(sanitized() ? 150000 : 1000000), done = 0;

	bench_open((uint64_t)_i, (enum loop_rig_kind)(_i % LOOP_RIG_KINDS));
	for (uint64_t turn = 0; done < operations; turn++) {
		/* In one turn of a hundred, the test makes 10,000 calls. */
		unsigned count =
			(unsigned)(dice_one_in(&bench->dice, 100) ? 10000
		                                                  : dice_below(&bench->dice, 200));

		expect_context("run, turn", (uint64_t)_i, turn);
		for (unsigned i = 0; i < count; i++) {
			op_random();
			if (dice_one_in(&bench->dice, 16))
				random_time_passes();
			if (dice_one_in(&bench->dice, 64))
				bench_update();
		}
		random_time_passes();
		if (dice_one_in(&bench->dice, 4))
			bench_update();
		if (dice_one_in(&bench->dice, 4))
			bench_ask();
		bench_turn();
		if (dice_one_in(&bench->dice, 16))
			bench_count();
		done += count;
	}
	expect_lt(0, bench->calls);
	loop_rig_close(bench->loop);
	for (uint32_t i = 0; i < TIMEOUTS; i++)
		expect_eq(bench->entries[i].timeout.owner, 0);
	free(bench);
}
