/* SPDX-License-Identifier: MIT */
/*
 * Litmus tests of the simulated memory: programs of two to four threads, with every combination of
 * memory orders. A search of all reads-from relations and modification orders, without
 * memory_models.c, finds what the axioms allow; then the program runs many times: a forbidden
 * outcome fails, and a modelled one must be seen. C11: RC11 (O. Lahav et al., "Repairing sequential
 * consistency in C/C++11", PLDI 2017) with C++20's release sequences. x86: x86-TSO (P. Sewell et
 * al., 2010).
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory_models.h"
#include "redirect_atomics.h"
#include "scheduler.h"
#include "seq_cst_order.h"

#define THREADS_MAX 4
#define EVENTS_MAX 12
#define PLACES 3
#define OUTCOMES_MAX 256

enum kind {
	WRITE,
	READ,
	ADD,
	SWAP, /* compare-and-swap: if the event reads `expected`, it writes `value` */
	PAIR, /* one of the two events of a compare-and-swap that changes x and y in one step */
};

struct event {
	enum kind kind;
	unsigned place, value, expected;
	unsigned other;  /* if PAIR: index of the event that is the other half */
	unsigned thread; /* number of the event's thread, or 0 for an initial value */
	int order;
};

struct program {
	const char *name;
	/*
	 * Threads by '|'. Wx1 writes 1 to x, Rx reads x, Ux adds 1, Cx12 changes 1 to 2, P0123
	 * changes x, y from 0, 1 to 2, 3 in one step.
	 */
	const char *text;
};

static const struct program programs[] = {
	{ "MP", "Wx1 Wy1|Ry Rx" },
	{ "SB", "Wx1 Ry|Wy1 Rx" },
	{ "SB, read-modify-writes", "Ux Ry|Uy Rx" },
	{ "LB", "Rx Wy1|Ry Wx1" },
	{ "S", "Wx2 Wy1|Ry Wx1" },
	{ "R", "Wx1 Wy1|Wy2 Rx" },
	{ "2+2W", "Wx1 Wy2|Wy1 Wx2" },
	{ "WRC", "Wx1|Rx Wy1|Ry Rx" },
	{ "IRIW", "Wx1|Wy1|Rx Ry|Ry Rx" },
	{ "W+RWC", "Wx1 Wy1|Ry Rz|Wz1 Rx" },
	{ "CoRR", "Wx1|Rx Rx" },
	{ "CoRR, two writers", "Wx1|Wx2|Rx Rx" },
	{ "CoWW", "Wx1 Wx2|Rx Rx" },
	{ "CoRW", "Rx Wx1|Wx2" },
	{ "CoWR", "Wx1 Rx|Wx2" },
	{ "release sequence, a read-modify-write", "Wy1 Wx1|Ux|Rx Ry" },
	{ "release sequence, the same thread", "Wy1 Wx1 Wx2|Rx Ry" },
	{ "release sequence, another thread", "Wy1 Wx1|Wx2|Rx Ry" },
	{ "release sequence, swap", "Wy1 Wx1|Cx12|Rx Ry" },
	{ "swap that fails", "Wx1 Wy1|Cy23 Rx" },
	{ "swap that may fail", "Wx1 Uy|Cy12 Rx" },
	{ "swap of what is gone", "Ux|Cx05|Rx" },
	{ "atomicity", "Ux|Ux|Rx Rx" },
	{ "pair, its halves", "P0011|Ry Rx" },
	{ "pair, its halves, the other way", "P0011|Rx Ry" },
	{ "pair, it carries by either half", "Wz1 P0001|Ry Rz" },
	{ "pair, it is carried to by either half", "Wz1 Ux|P1011 Rz" },
	{ "pair, one of two", "P0010|P0001|Rx Ry" },
	{ "pair, one after the other", "P0011|P1122|Ry Rx" },
	{ "pair, one half expected", "P0010|P1011|Ry Rx" },
	{ "pair, a release sequence by either half", "Wz1 P0001|P0112|Rx Rz" },
};

static struct test {
	struct event events[EVENTS_MAX];
	unsigned count; /* number of events. The first PLACES are the initial values. */
	unsigned threads;
	bool again; /* true if the places are accessed and freed before the program begins */
} test;

/* Of four bits for each event's value and each place's last. */
struct outcomes {
	uint64_t outcomes[OUTCOMES_MAX];
	unsigned count;
};

static enum memory_mode mode = MEMORY_C11;

static _Noreturn void stop(const char *text)
{
	fprintf(stderr, "%s\n", text);
	exit(EXIT_FAILURE);
}

static bool outcomes_have(const struct outcomes *outcomes, uint64_t outcome)
{
	for (unsigned i = 0; i < outcomes->count; i++)
		if (outcomes->outcomes[i] == outcome)
			return true;
	return false;
}

static void outcomes_add(struct outcomes *outcomes, uint64_t outcome)
{
	if (outcomes_have(outcomes, outcome))
		return;
	if (outcomes->count == OUTCOMES_MAX)
		stop("too many outcomes");
	outcomes->outcomes[outcomes->count++] = outcome;
}

static bool all_seen(const struct outcomes *seen, const struct outcomes *seeable)
{
	for (unsigned i = 0; i < seeable->count; i++)
		if (!outcomes_have(seen, seeable->outcomes[i]))
			return false;
	return true;
}

/* ---- relations between events: for each event, a row of bits ---- */

struct relation {
	uint16_t rows[EVENTS_MAX];
};

static void relate(struct relation *relation, unsigned from, unsigned to)
{
	relation->rows[from] |= (uint16_t)(1u << to);
}

static bool related(const struct relation *relation, unsigned from, unsigned to)
{
	return (relation->rows[from] >> to & 1) != 0;
}

static void add_relation(struct relation *relation, const struct relation *other)
{
	for (unsigned i = 0; i < EVENTS_MAX; i++)
		relation->rows[i] |= other->rows[i];
}

static struct relation closure(struct relation relation)
{
	for (unsigned via = 0; via < EVENTS_MAX; via++)
		for (unsigned i = 0; i < EVENTS_MAX; i++)
			if (related(&relation, i, via))
				relation.rows[i] |= relation.rows[via];
	return relation;
}

static bool acyclic(const struct relation *relation)
{
	struct relation closed = closure(*relation);

	for (unsigned i = 0; i < EVENTS_MAX; i++)
		if (related(&closed, i, i))
			return false;
	return true;
}

/* ---- one candidate execution ---- */

static struct execution {
	/* for each read: its write */
	unsigned from[EVENTS_MAX];
	unsigned read[EVENTS_MAX], wrote[EVENTS_MAX]; /* values that each event reads and writes */
	bool reads[EVENTS_MAX], writes[EVENTS_MAX];
	/* the writes to each place in modification order, the initial value first */
	unsigned mo[PLACES][EVENTS_MAX], mo_count[PLACES];
	struct relation sb, rf, co, fr; /* relations between events; co: modification order */
} run;

static bool event_is_sc(unsigned i)
{
	return test.events[i].order == memory_order_seq_cst;
}

static bool event_releases(unsigned i)
{
	int order = test.events[i].order;

	return run.writes[i] && (order == memory_order_release || order == memory_order_acq_rel ||
	                         order == memory_order_seq_cst);
}

static bool event_acquires(unsigned i)
{
	int order = test.events[i].order;

	/* a failed pair returns no values, so it acquires nothing */
	return run.reads[i] && (test.events[i].kind != PAIR || run.writes[i]) &&
	       (order == memory_order_acquire || order == memory_order_acq_rel ||
	        order == memory_order_seq_cst);
}

static bool same_place(unsigned i, unsigned j)
{
	return test.events[i].place == test.events[j].place;
}

/* A pair is one step: each edge of a half is one of both. */
static void join_halves(struct relation *relation)
{
	for (unsigned i = PLACES; i < test.count; i++) {
		unsigned other = test.events[i].other;

		if (test.events[i].kind != PAIR)
			continue;
		relation->rows[i] |= relation->rows[other];
		for (unsigned j = 0; j < test.count; j++)
			if (related(relation, j, other))
				relate(relation, j, i);
	}
}

/* From a release to an acquire that reads from its release sequence. */
static void add_synchronizes(struct relation *hb)
{
	for (unsigned head = PLACES; head < test.count; head++) {
		const struct event *event = &test.events[head];
		bool in_sequence = false;

		if (!event_releases(head))
			continue;
		for (unsigned n = 0; n < run.mo_count[event->place]; n++) {
			unsigned write = run.mo[event->place][n];

			in_sequence = write == head || (in_sequence && run.reads[write]);
			for (unsigned read = 0; read < test.count && in_sequence; read++)
				if (event_acquires(read) && run.from[read] == write)
					relate(hb, head, read);
		}
	}
}

static bool atomic_changes(void)
{
	for (unsigned place = 0; place < PLACES; place++)
		for (unsigned n = 1; n < run.mo_count[place]; n++) {
			unsigned write = run.mo[place][n];

			if (run.reads[write] && run.from[write] != run.mo[place][n - 1])
				return false;
		}
	return true;
}

static bool coherent(const struct relation *hb)
{
	struct relation eco = run.rf;

	add_relation(&eco, &run.co);
	add_relation(&eco, &run.fr);
	eco = closure(eco);
	for (unsigned i = 0; i < test.count; i++)
		for (unsigned j = 0; j < test.count; j++)
			if (related(hb, i, j) && (i == j || related(&eco, j, i)))
				return false;
	return true;
}

/* RC11's sb|≠loc; hb; sb|≠loc from i by k and l to j, with i, k and l, j on different places. */
static bool sb_hb_sb(const struct relation *hb, unsigned i, unsigned j)
{
	for (unsigned k = 0; k < test.count; k++)
		for (unsigned l = 0; l < test.count; l++)
			if (related(&run.sb, i, k) && !same_place(i, k) && related(hb, k, l) &&
			    related(&run.sb, l, j) && !same_place(l, j))
				return true;
	return false;
}

/* psc has no cycle; without fences it needs no edges for them. */
static bool sc_consistent(const struct relation *hb)
{
	struct relation psc = { { 0 } };

	for (unsigned i = 0; i < test.count; i++)
		for (unsigned j = 0; j < test.count; j++)
			if (i != j && event_is_sc(i) && event_is_sc(j) &&
			    (related(&run.sb, i, j) || related(&run.co, i, j) ||
			     related(&run.fr, i, j) || (same_place(i, j) && related(hb, i, j)) ||
			     sb_hb_sb(hb, i, j)))
				relate(&psc, i, j);
	return acyclic(&psc);
}

/* There the modification order is the order in which the stores are made. */
static bool modelled(void)
{
	struct relation order = run.sb;

	add_relation(&order, &run.rf);
	add_relation(&order, &run.co);
	join_halves(&order);
	return acyclic(&order);
}

/* The pairs come in one order in both words. */
static bool pairs_agree(void)
{
	struct relation order = run.co;

	join_halves(&order);
	return acyclic(&order);
}

/* In program order, but a plain store may come after a later load. */
static bool tso_consistent(void)
{
	struct relation order = { { 0 } }, each_place = { { 0 } };

	for (unsigned i = 0; i < test.count; i++)
		for (unsigned j = 0; j < test.count; j++) {
			bool overtaken = run.writes[i] && !run.reads[i] && !run.writes[j] &&
			                 test.events[i].thread != 0 && !event_is_sc(i);
			bool locked = test.events[j].kind == SWAP || test.events[j].kind == PAIR;

			/* a failed compare-and-swap is a locked instruction too */
			if (related(&run.sb, i, j) && (!overtaken || locked))
				relate(&order, i, j);
			if (related(&run.sb, i, j) && same_place(i, j))
				relate(&each_place, i, j);
			if (related(&run.rf, i, j) &&
			    test.events[i].thread != test.events[j].thread)
				relate(&order, i, j);
		}
	add_relation(&order, &run.co);
	add_relation(&order, &run.fr);
	join_halves(&order);
	add_relation(&each_place, &run.rf);
	add_relation(&each_place, &run.co);
	add_relation(&each_place, &run.fr);
	return acyclic(&order) && acyclic(&each_place);
}

/* ---- the search of every candidate execution ---- */

static uint64_t run_outcome(void)
{
	uint64_t outcome = 0;

	for (unsigned i = PLACES; i < test.count; i++)
		if (test.events[i].kind == PAIR)
			outcome = outcome << 4 | (run.writes[i] ? 1 : 0);
		else
			outcome = outcome << 4 | (run.reads[i] ? run.read[i] : 0);
	for (unsigned place = 0; place < PLACES; place++)
		outcome = outcome << 4 | run.wrote[run.mo[place][run.mo_count[place] - 1]];
	return outcome;
}

static void judge(struct outcomes *allowed, struct outcomes *seeable)
{
	struct relation hb = run.sb, sb_rf = run.sb;

	run.co = run.fr = (struct relation){ { 0 } };
	for (unsigned place = 0; place < PLACES; place++)
		for (unsigned n = 0; n < run.mo_count[place]; n++)
			for (unsigned m = n + 1; m < run.mo_count[place]; m++)
				relate(&run.co, run.mo[place][n], run.mo[place][m]);
	for (unsigned i = PLACES; i < test.count; i++)
		for (unsigned j = 0; j < test.count; j++)
			if (run.reads[i] && i != j && related(&run.co, run.from[i], j))
				relate(&run.fr, i, j);
	add_relation(&sb_rf, &run.rf);
	join_halves(&sb_rf);
	if (!atomic_changes() || !acyclic(&sb_rf) || !pairs_agree())
		return;
	if (mode == MEMORY_TSO) {
		if (tso_consistent()) {
			outcomes_add(allowed, run_outcome());
			outcomes_add(seeable, run_outcome());
		}
		return;
	}
	add_synchronizes(&hb);
	join_halves(&hb);
	hb = closure(hb);
	if (!coherent(&hb))
		return;
	if (!sc_consistent(&hb))
		return;
	outcomes_add(allowed, run_outcome());
	if (modelled())
		outcomes_add(seeable, run_outcome());
}

/* And of later places. */
static void try_orders(unsigned place, struct outcomes *allowed, struct outcomes *seeable)
{
	unsigned *mo = run.mo[place % PLACES], *count = &run.mo_count[place % PLACES];

	if (place == PLACES) {
		judge(allowed, seeable);
		return;
	}
	if (*count == 0)
		mo[(*count)++] = place;
	for (unsigned i = PLACES, left = 0;; i++) {
		bool placed = false;

		if (i == test.count) {
			if (left == 0)
				try_orders(place + 1, allowed, seeable);
			break;
		}
		if (!run.writes[i] || test.events[i].place != place)
			continue;
		for (unsigned n = 0; n < *count; n++)
			placed |= mo[n] == i;
		if (placed)
			continue;
		left++;
		mo[(*count)++] = i;
		try_orders(place, allowed, seeable);
		(*count)--;
	}
	if (*count == 1)
		*count = 0;
}

/* From the write `run.from[i]`. False if it would read its own write, directly or not. */
static bool evaluate(unsigned i, unsigned depth)
{
	const struct event *event = &test.events[i];

	if (depth > EVENTS_MAX)
		return false;
	run.reads[i] = event->kind != WRITE;
	run.writes[i] = event->kind != READ;
	run.wrote[i] = event->value;
	if (event->kind == WRITE)
		return true;
	if (!evaluate(run.from[i], depth + 1))
		return false;
	run.read[i] = run.wrote[run.from[i]];
	if (event->kind == ADD)
		run.wrote[i] = run.read[i] + 1;
	if (event->kind == SWAP)
		run.writes[i] = run.read[i] == event->expected;
	if (event->kind == PAIR) {
		if (!evaluate(run.from[event->other], depth + 1))
			return false;
		run.writes[i] =
			run.read[i] == event->expected &&
			run.wrote[run.from[event->other]] == test.events[event->other].expected;
	}
	return true;
}

/* And for each later event. */
static void try_reads(unsigned i, struct outcomes *allowed, struct outcomes *seeable)
{
	if (i < test.count && test.events[i].kind == WRITE) {
		try_reads(i + 1, allowed, seeable);
		return;
	}
	if (i < test.count) {
		for (unsigned j = 0; j < test.count; j++)
			if (j != i && same_place(i, j) && test.events[j].kind != READ) {
				run.from[i] = j;
				try_reads(i + 1, allowed, seeable);
			}
		return;
	}
	run.rf = (struct relation){ { 0 } };
	for (unsigned k = 0; k < test.count; k++)
		if (!evaluate(k, 0))
			return;
	for (unsigned k = PLACES; k < test.count; k++) {
		if (run.reads[k] && !run.writes[run.from[k]])
			/* it has written nothing */
			return;
		if (run.reads[k])
			relate(&run.rf, run.from[k], k);
	}
	try_orders(0, allowed, seeable);
}

static void work_out(struct outcomes *allowed, struct outcomes *seeable)
{
	allowed->count = seeable->count = 0;
	memset(&run, 0, sizeof(run));
	for (unsigned i = 0; i < test.count; i++)
		for (unsigned j = PLACES; j < test.count; j++)
			if (i < j &&
			    (i < PLACES || test.events[i].thread == test.events[j].thread) &&
			    (test.events[i].kind != PAIR || test.events[i].other != j))
				relate(&run.sb, i, j);
	try_reads(PLACES, allowed, seeable);
}

/* ---- running a program ---- */

static _Alignas(16) uint64_t places[PLACES + 1];

static unsigned pair_do(const struct event *event)
{
	const struct event *other = &test.events[event->other];
	unsigned __int128 before = (unsigned __int128)other->expected << 64 | event->expected;
	unsigned __int128 after = (unsigned __int128)other->value << 64 | event->value;

	return simulation_cas_pair(places, before, after, event->order);
}

static unsigned event_do(const struct event *event)
{
	uint64_t expected = event->expected;
	uint64_t *place = &places[event->place];
	int failed = event->order == memory_order_acq_rel   ? memory_order_acquire
	             : event->order == memory_order_release ? memory_order_relaxed
	                                                    : event->order;

	switch (event->kind) {
	case WRITE:
		simulation_store(place, sizeof(*place), event->value, event->order);
		return 0;
	case READ:
		return (unsigned)simulation_load(place, sizeof(*place), event->order);
	case ADD:
		return (unsigned)simulation_change(place, sizeof(*place), SIMULATION_ADD, 1,
		                                   event->order);
	case SWAP:
		(void)simulation_cas(place, sizeof(*place), &expected, event->value, event->order,
		                     failed);
		return (unsigned)expected;
	default:
		return pair_do(event);
	}
}

/* An outside thread makes seq_cst loads, so that seq_cst_order.c forgets the program's accesses. */
static void make_forget(struct dice *dice)
{
	static uint32_t own;

	scheduler_enter(&scheduler.actors[test.threads + 1]);
	for (uint64_t left = SC_EVENTS - dice_below(dice, test.count); left > 0; left--)
		(void)simulation_load(&own, sizeof(own), memory_order_seq_cst);
}

/* Earlier uses of the places must not matter. */
static void use_before(struct dice *dice)
{
	for (uint64_t left = 2 * PLACES + dice_below(dice, 8); left > 0; left--)
		(void)simulation_change(&places[left % PLACES], sizeof(places[0]), SIMULATION_ADD,
		                        1, memory_order_seq_cst);
	memory_freed(places, sizeof(places));
	memory_allocated(places, sizeof(places));
	memset(places, 0, sizeof(places));
}

static uint64_t run_once(struct dice *dice)
{
	unsigned next[THREADS_MAX + 1], left = test.count - PLACES, reads[EVENTS_MAX];
	/* when make_forget() is called; in three runs of four, never */
	unsigned forgets = (unsigned)dice_below(dice, 4 * left);
	uint64_t outcome = 0;

	scheduler_enter(&scheduler.actors[0]);
	memset(places, 0, sizeof(places));
	memory_begin(mode, dice_seeded(dice_roll(dice), 1));
	if (test.again)
		use_before(dice);
	for (unsigned thread = 1; thread <= test.threads; thread++) {
		memory_born(thread);
		for (next[thread] = PLACES; test.events[next[thread]].thread != thread;)
			next[thread]++;
	}
	memory_born(test.threads + 1);
	while (left > 0) {
		unsigned thread = 1 + (unsigned)dice_below(dice, test.threads), i = next[thread];

		if (i == test.count || test.events[i].thread != thread)
			continue;
		if (left == forgets)
			make_forget(dice);
		scheduler_enter(&scheduler.actors[thread]);
		reads[i] = event_do(&test.events[i]);
		next[thread]++;
		left--;
		if (test.events[i].kind == PAIR) {
			reads[i + 1] = reads[i];
			next[thread]++;
			left--;
		}
	}
	scheduler_enter(&scheduler.actors[0]);
	for (unsigned thread = 1; thread <= test.threads; thread++)
		memory_join(thread);
	for (unsigned i = PLACES; i < test.count; i++)
		outcome = outcome << 4 | reads[i];
	for (unsigned place = 0; place < PLACES; place++)
		outcome = outcome << 4 | (unsigned)places[place];
	return outcome;
}

/* ---- programs ---- */

static void parse_pair(const char *digits, unsigned thread)
{
	for (unsigned place = 0; place < 2; place++, test.count++)
		test.events[test.count] = (struct event){
			.kind = PAIR,
			.place = place,
			.expected = (unsigned)(digits[place] - '0'),
			.value = (unsigned)(digits[2 + place] - '0'),
			.other = place == 0 ? test.count + 1 : test.count - 1,
			.thread = thread,
		};
}

static void parse(const char *text)
{
	unsigned thread = 1;

	memset(&test, 0, sizeof(test));
	for (; test.count < PLACES; test.count++)
		test.events[test.count] = (struct event){ .kind = WRITE, .place = test.count };
	for (; *text != '\0'; text++) {
		struct event *event = &test.events[test.count];

		if (*text == '|')
			thread++;
		if (*text == '|' || *text == ' ')
			continue;
		if (*text == 'P') {
			parse_pair(text + 1, thread);
			text += 4;
			continue;
		}
		event->kind = *text == 'W'   ? WRITE
		              : *text == 'R' ? READ
		              : *text == 'U' ? ADD
		                             : SWAP;
		event->place = (unsigned)(*++text - 'x');
		event->thread = thread;
		if (event->kind == SWAP)
			event->expected = (unsigned)(*++text - '0');
		if (event->kind == WRITE || event->kind == SWAP)
			event->value = (unsigned)(*++text - '0');
		test.count++;
	}
	test.threads = thread;
}

/* False after the last combination. */
static bool next_orders(void)
{
	static const int orders[] = { memory_order_relaxed, memory_order_acquire,
		                      memory_order_release, memory_order_acq_rel,
		                      memory_order_seq_cst };

	for (unsigned i = PLACES; i < test.count; i++) {
		struct event *event = &test.events[i];
		unsigned n = 0;

		while (orders[n] != event->order)
			n++;
		do {
			n++;
		} while (n < 5 && ((event->kind == WRITE && (n == 1 || n == 3)) ||
		                   (event->kind == READ && (n == 2 || n == 3)) ||
		                   (event->kind == PAIR && n == 4)));
		event->order = orders[n % 5];
		if (event->kind == PAIR)
			/* both halves of a pair have one */
			test.events[++i].order = event->order;
		if (n < 5)
			return true;
	}
	return false;
}

static void print_orders(uint64_t outcome)
{
	static const char *const names[] = { [memory_order_relaxed] = "rlx",
		                             [memory_order_acquire] = "acq",
		                             [memory_order_release] = "rel",
		                             [memory_order_acq_rel] = "acq_rel",
		                             [memory_order_seq_cst] = "sc" };

	for (unsigned i = PLACES; i < test.count; i++)
		printf(" %s", names[test.events[i].order]);
	printf(": %" PRIx64 "\n", outcome);
}

/* Returns the number of failures. */
static unsigned try_program(const struct program *program, unsigned runs, struct dice *dice)
{
	static struct outcomes allowed, seeable, seen;
	unsigned combinations = 0, failures = 0, unmodelled = 0, many = 0;

	parse(program->text);
	do {
		combinations++;
		work_out(&allowed, &seeable);
		seen.count = 0;
		test.again = dice_one_in(dice, 2);
		/* until all of `seeable` was seen, up to a number, so that a seed repeats */
		for (uint64_t i = 0;
		     i < runs || (!all_seen(&seen, &seeable) && i < UINT64_C(100) * runs); i++)
			outcomes_add(&seen, run_once(dice));
		many += allowed.count;
		for (unsigned i = 0; i < seen.count; i++)
			if (!outcomes_have(&allowed, seen.outcomes[i])) {
				printf("%s: seen, and forbidden:", program->name);
				print_orders(seen.outcomes[i]);
				failures++;
			}
		for (unsigned i = 0; i < seeable.count; i++)
			if (!outcomes_have(&seen, seeable.outcomes[i])) {
				printf("%s: allowed, and not seen:", program->name);
				print_orders(seeable.outcomes[i]);
				failures++;
			}
		for (unsigned i = 0; i < allowed.count; i++)
			unmodelled += !outcomes_have(&seeable, allowed.outcomes[i]);
	} while (next_orders());
	printf("%-40s %4u combinations of orders, %5u outcomes allowed, of which %4u are not "
	       "modelled\n",
	       program->name, combinations, many, unmodelled);
	return failures;
}

int main(int argc, char **argv)
{
	unsigned runs = 2000, failures = 0;
	uint64_t seed = 1;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--runs") == 0)
			runs = (unsigned)strtoul(argv[i + 1], NULL, 0);
		else if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[i + 1], NULL, 0);
		else if (strcmp(argv[i], "--memory") == 0 && strcmp(argv[i + 1], "tso") == 0)
			mode = MEMORY_TSO;
		else if (strcmp(argv[i], "--memory") != 0)
			stop("Usage: litmus [--runs OF_EACH_COMBINATION] [--seed S] [--memory "
			     "c11|tso]");
	}
	for (unsigned i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		struct dice dice = dice_seeded(seed, i);

		failures += try_program(&programs[i], runs, &dice);
	}
	printf("seed %" PRIu64 ": %u failures\n", seed, failures);
	return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
