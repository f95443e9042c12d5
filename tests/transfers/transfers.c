/* SPDX-License-Identifier: MIT */
/*
 * How many cache lines an operation moves between processors, for 1 to 256 of them: the library's
 * own code, with its own limits, on the processors of machine.c, which have a hub that is moved by
 * an owner on a processor of its own. Each workload at each size is run by a process of its own.
 *
 * With --check only a few sizes are run, and each figure is held against what is allowed: a count
 * or a field that lands on another thread's line shows here, on a machine of any size.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../harness/dice.h"
#include "hub.h"
#include "machine.h"

#define CALLERS_MAX 256
#define HUBS_MAX 16
#define TIMERS 65536   /* of all callers together */
#define TIMERS_MIN 256 /* of each caller */
#define RING 64        /* requests in flight of each caller */
#define BATCH 32       /* timers that a caller has delivered at once */
#define STEPS 65536    /* of all callers together, at least; and as many before, to warm up */
#define STEPS_MIN 512
#define SECOND_NS UINT64_C(1000000000)

enum kind { KIND_REARM, KIND_ARM, KIND_CANCEL, KIND_DELIVERY, KIND_OWNER, KIND_UNASKED, KINDS };

static const char *const kind_names[KINDS] = { "re-arm", "arm", "cancel", "delivery", "owner", "" };
static const char *const place_names[PLACES] = { "words", "records", "filings", "free", "lanes",
	                                         "cells", "promise", "queues",  "other" };

struct caller {
	_Alignas(LINE_BYTES) timerhub_timer *timers;
	struct timerhub_event events[BATCH];
	struct timerhub *hub;
	struct timerhub_queue *queue;
	struct dice dice;
	uint64_t steps;
};

struct workload {
	const char *name, *what;
	void (*step)(struct caller *caller);
	bool shared_queue;
	unsigned scale; /* a step is so many operations */
};

static struct options {
	unsigned hubs, nodes;
	bool places;
} options = { .hubs = 1, .nodes = 1 };

static struct caller callers[CALLERS_MAX];
static unsigned callers_count, timers_count; /* timers of each */
static struct timerhub *hubs[HUBS_MAX];
static uint8_t node_of[PROCESSORS_MAX];
static struct tally tallies[PROCESSORS_MAX][KINDS];
static const struct workload *workload;
static unsigned opening; /* the processor on whose behalf timers are armed before the run */

/* ---- what the library asks the machine ---- */

int __wrap_sched_getcpu(void);
long __wrap_sysconf(int name);
long __real_sysconf(int name);

int __wrap_sched_getcpu(void)
{
	return (int)(machine_running() ? machine_self() : opening);
}

long __wrap_sysconf(int name)
{
	return name == _SC_NPROCESSORS_CONF ? (long)callers_count : __real_sysconf(name);
}

static bool within(uintptr_t at, const volatile void *base, size_t bytes)
{
	return at - (uintptr_t)base < bytes;
}

static enum place place_in(const struct timerhub *hub, uintptr_t at)
{
	const struct arena *arena = &hub->arena;
	const struct inbox *inbox = &hub->inbox;
	size_t lanes_bytes = (inbox->lane_mask + 1) * sizeof(*inbox->lanes);

	if (within(at, arena->timers.hot, arena->capacity * sizeof(*arena->timers.hot)))
		return PLACE_WORDS;
	if (within(at, arena->timers.cold, arena->capacity * sizeof(*arena->timers.cold)))
		return PLACE_RECORDS;
	if (within(at, arena->filings, arena->capacity * sizeof(*arena->filings)))
		return PLACE_FILINGS;
	if (within(at, arena->shards, (arena->shard_mask + 1) * sizeof(*arena->shards)))
		return PLACE_FREE_STACKS;
	if (within(at, inbox->lanes, lanes_bytes))
		return PLACE_LANES;
	if (within(at, inbox->memory.base, inbox->memory.bytes))
		return PLACE_CELLS;
	if (within(at, &hub->promise, sizeof(hub->promise)))
		return PLACE_PROMISE;
	return PLACE_OTHER;
}

static enum place place_of(uintptr_t at)
{
	for (unsigned i = 0; i < options.hubs; i++) {
		enum place place = place_in(hubs[i], at);

		if (place != PLACE_OTHER)
			return place;
	}
	for (unsigned i = 0; i < callers_count; i++)
		if (within(at, callers[i].queue, sizeof(*callers[i].queue)) ||
		    within(at, callers[i].queue->outbox.cells,
		           callers[i].queue->outbox.memory.bytes))
			return PLACE_QUEUES;
	return PLACE_OTHER;
}

/* A hub with a thread has neither: it reads the system's clock, and no caller enters it. */
static bool ignored(uintptr_t at)
{
	for (unsigned i = 0; i < options.hubs; i++)
		if (within(at, &hubs[i]->clock.manual_ns, sizeof(hubs[i]->clock.manual_ns)) ||
		    within(at, &hubs[i]->advancing, sizeof(hubs[i]->advancing)))
			return true;
	return false;
}

/* ---- what callers do ---- */

static void must(int result, const char *what)
{
	if (result >= 0)
		return;
	(void)fprintf(stderr, "transfers: %s: %s\n", what, strerror(-result));
	_exit(2);
}

static struct tally *charge_to(enum kind kind)
{
	struct tally *tally = &tallies[machine_self()][kind];

	tally->operations++;
	return machine_charge(tally);
}

static void arm(struct caller *caller, timerhub_timer *timer, uint64_t expires_ns)
{
	struct timerhub_spec spec = {
		.size = sizeof(spec),
		.flags = TIMERHUB_ABSOLUTE,
		.expires_ns = expires_ns,
	};

	must(timerhub_arm(caller->queue, &spec, timer), "arm");
}

static void arm_charged(struct caller *caller, timerhub_timer *timer, uint64_t expires_ns)
{
	struct tally *before = charge_to(KIND_ARM);

	arm(caller, timer, expires_ns);
	(void)machine_charge(before);
}

static void rearm_charged(struct caller *caller, timerhub_timer timer, uint64_t expires_ns)
{
	struct tally *before = charge_to(KIND_REARM);

	must(timerhub_rearm(caller->hub, timer, expires_ns, TIMERHUB_ABSOLUTE), "rearm");
	(void)machine_charge(before);
}

static void cancel_charged(struct caller *caller, timerhub_timer timer)
{
	struct tally *before = charge_to(KIND_CANCEL);

	must(timerhub_cancel(caller->hub, timer), "cancel");
	(void)machine_charge(before);
}

static unsigned pick(struct caller *caller, unsigned count)
{
	return (unsigned)dice_below(&caller->dice, count);
}

static void step_rearm(struct caller *caller)
{
	rearm_charged(caller, caller->timers[pick(caller, timers_count)],
	              machine_now() + 7200 * SECOND_NS);
}

/* Another caller of the same hub. */
static struct caller *any_other(struct caller *caller)
{
	struct caller *other;

	do {
		other = &callers[pick(caller, callers_count)];
	} while (callers_count > options.hubs && (other == caller || other->hub != caller->hub));
	return other;
}

static void step_rearm_other(struct caller *caller)
{
	rearm_charged(caller, any_other(caller)->timers[pick(caller, timers_count)],
	              machine_now() + 7200 * SECOND_NS);
}

static void step_rearm_earlier(struct caller *caller)
{
	rearm_charged(caller, caller->timers[caller->steps % timers_count],
	              3600 * SECOND_NS - caller->steps * 100000);
}

static void step_churn(struct caller *caller)
{
	timerhub_timer *timer = &caller->timers[pick(caller, timers_count)];

	cancel_charged(caller, *timer);
	arm_charged(caller, timer,
	            machine_now() + 60 * SECOND_NS + dice_below(&caller->dice, 60 * SECOND_NS));
}

static void step_request(struct caller *caller)
{
	timerhub_timer *timer = &caller->timers[caller->steps % RING];

	cancel_charged(caller, *timer);
	arm_charged(caller, timer, machine_now() + 7200 * SECOND_NS);
}

/* One caller arms, the next one cancels. */
static void step_handed_on(struct caller *caller)
{
	struct caller *next = &callers[(unsigned)(caller - callers + 1) % callers_count];
	timerhub_timer *theirs = &next->timers[(caller->steps + RING / 2) % RING];
	timerhub_timer *ours = &caller->timers[caller->steps % RING];

	if (*theirs != 0 && next->hub == caller->hub) {
		cancel_charged(caller, *theirs);
		*theirs = 0;
	}
	if (*ours == 0)
		arm_charged(caller, ours, machine_now() + 7200 * SECOND_NS);
}

static void tally_add(struct tally *sum, const struct tally *part)
{
	sum->operations += part->operations;
	sum->accesses += part->accesses;
	sum->fetched += part->fetched;
	sum->remote += part->remote;
	sum->invalidated += part->invalidated;
	sum->locked += part->locked;
	sum->ticks += part->ticks;
	for (unsigned i = 0; i < PLACES; i++)
		sum->moves[i] += part->moves[i];
}

static int take(struct caller *caller, unsigned max)
{
	if (workload->shared_queue)
		return timerhub_wait(caller->queue, caller->events, max, 0);
	return timerhub_drain(caller->queue, caller->events, max);
}

/* What a call that finds nothing does is not counted: how often one asks is its own affair. */
static void step_deliver(struct caller *caller)
{
	timerhub_timer timer;

	for (unsigned i = 0; i < BATCH; i++)
		arm_charged(caller, &timer,
		            machine_now() + 5000 + dice_below(&caller->dice, 20000));
	for (unsigned left = BATCH; left > 0;) {
		struct tally asked = { .operations = 0 };
		struct tally *before = machine_charge(&asked);
		int count = take(caller, left);

		(void)machine_charge(before);
		must(count, "take");
		asked.operations = (unsigned)count;
		if (count > 0)
			tally_add(&tallies[machine_self()][KIND_DELIVERY], &asked);
		else
			machine_idle();
		left -= (unsigned)count;
	}
}

static const struct workload workloads[] = {
	{ "rearm", "re-arm an own timer to later", step_rearm, false, 1 },
	{ "rearm-other", "re-arm another caller's timer to later", step_rearm_other, false, 1 },
	{ "rearm-earlier", "re-arm an own timer to earlier", step_rearm_earlier, false, 1 },
	{ "churn", "cancel an own timer, arm one of 60 to 120 s", step_churn, false, 1 },
	{ "request", "arm a timeout, cancel it 64 arms later", step_request, false, 1 },
	{ "handed-on", "arm a timeout, the next caller cancels it", step_handed_on, false, 1 },
	{ "deliver", "arm 32 that come within 25 us, drain an own queue", step_deliver, false,
	  BATCH },
	{ "deliver-shared", "the same, all wait on one queue", step_deliver, true, BATCH },
};

/* ---- the run ---- */

static void caller_body(struct caller *caller)
{
	(void)machine_charge(&tallies[machine_self()][KIND_UNASKED]);
	for (;;) {
		workload->step(caller);
		caller->steps++;
		machine_step();
	}
}

static bool rung(int bell)
{
	struct pollfd ready = { .fd = bell, .events = POLLIN };

	return poll(&ready, 1, 0) == 1;
}

static void owner_body(struct timerhub *hub)
{
	int bell = timerhub_wake_fd(hub);
	uint64_t next_ns = 0;

	machine_fetches_ahead();
	(void)machine_charge(&tallies[machine_self()][KIND_OWNER]);
	for (;;) {
		if (machine_now() < next_ns && !rung(bell)) {
			machine_idle();
			continue;
		}
		must(timerhub_advance(hub, machine_now(), &next_ns), "advance");
	}
}

static void body(unsigned processor)
{
	if (processor < callers_count)
		caller_body(&callers[processor]);
	else
		owner_body(hubs[processor - callers_count]);
}

static void open_hubs(void)
{
	struct timerhub_config config = {
		.size = sizeof(config),
		.flags = TIMERHUB_MANUAL,
		.timers_max = 1u << 20,
	};

	for (unsigned i = 0; i < options.hubs; i++)
		must(timerhub_open(&hubs[i], &config), "open");
}

static void open_callers(void)
{
	struct timerhub_queue *queues[HUBS_MAX] = { NULL };
	bool deliver = workload->scale > 1;

	for (unsigned i = 0; i < callers_count; i++) {
		struct caller *caller = &callers[i];
		unsigned hub = i * options.hubs / callers_count;

		opening = i;
		node_of[i] = (uint8_t)(i * options.nodes / callers_count);
		node_of[callers_count + hub] = node_of[i];
		caller->hub = hubs[hub];
		caller->dice = dice_seeded(1, i);
		caller->timers = aligned_alloc(LINE_BYTES, timers_count * sizeof(timerhub_timer));
		if (!caller->timers)
			must(-ENOMEM, "timers");
		if (!queues[hub] || !workload->shared_queue)
			must(timerhub_queue_open(hubs[hub], &queues[hub], NULL), "queue_open");
		caller->queue = queues[hub];
		for (unsigned k = 0; k < timers_count && !deliver; k++)
			arm(caller, &caller->timers[k], 3600 * SECOND_NS);
	}
}

static void open_all(void)
{
	struct machine_setup setup = {
		.processors = callers_count + options.hubs,
		.node_of = node_of,
		.place_of = options.places ? place_of : NULL,
		.ignored = ignored,
		.body = body,
	};
	struct caller first = { .hub = NULL };
	timerhub_timer timer;

	timers_count = TIMERS / callers_count > TIMERS_MIN ? TIMERS / callers_count : TIMERS_MIN;
	open_hubs();
	open_callers();
	/* One timer that is always the earliest, so that no other has to wake the owner. */
	for (unsigned i = 0; i < options.hubs && workload->scale == 1; i++) {
		must(timerhub_queue_open(hubs[i], &first.queue, NULL), "queue_open");
		arm(&first, &timer, 30 * SECOND_NS);
	}
	for (unsigned i = 0; i < options.hubs; i++)
		must(timerhub_advance(hubs[i], 0, NULL), "advance");
	machine_begin(&setup);
}

static struct tally sum_of(enum kind kind)
{
	struct tally sum = { .operations = 0 };

	for (unsigned i = 0; i < PROCESSORS_MAX; i++)
		tally_add(&sum, &tallies[i][kind]);
	return sum;
}

struct figure {
	double fetched, remote, invalidated, locked, ticks;
};

static struct figure figure_of(const struct tally *tally, uint64_t operations)
{
	double by = (double)operations;

	return (struct figure){
		.fetched = (double)tally->fetched / by,
		.remote = (double)tally->remote / by,
		.invalidated = (double)tally->invalidated / by,
		.locked = (double)tally->locked / by,
		.ticks = (double)tally->ticks / by,
	};
}

static void print_places(const struct tally *tally, uint64_t operations)
{
	(void)printf("%29s", "");
	for (unsigned i = 0; i < PLACES; i++)
		if (tally->moves[i] > operations / 200)
			(void)printf(" %s %.2f", place_names[i],
			             (double)tally->moves[i] / (double)operations);
	(void)printf("\n");
}

static void print_kind(enum kind kind, const struct tally *tally, uint64_t operations,
                       uint64_t window)
{
	struct figure figure = figure_of(tally, operations);

	(void)printf("%10u  %-10s%8.2f%8.2f%8.2f%8.2f%8.0f", callers_count, kind_names[kind],
	             figure.fetched, figure.remote, figure.invalidated, figure.locked,
	             figure.ticks);
	if (kind == KIND_OWNER)
		(void)printf("%7.0f%%",
		             100.0 * (double)tally->ticks / (double)(window * options.hubs));
	(void)printf("\n");
	if (options.places)
		print_places(tally, operations);
}

/* In a process of its own, which need not close what it has opened. */
static void run_workload(struct figure *ret_figures)
{
	uint64_t steps = STEPS / workload->scale / callers_count, begun, operations = 0;

	steps = steps > STEPS_MIN / workload->scale ? steps : STEPS_MIN / workload->scale;
	open_all();
	machine_run(steps, callers_count);
	memset(tallies, 0, sizeof(tallies));
	begun = machine_time();
	machine_run(steps, callers_count);
	for (unsigned kind = 0; kind < KIND_UNASKED; kind++) {
		struct tally sum = sum_of((enum kind)kind);

		if (kind == KIND_OWNER)
			sum.operations = operations;
		else if (sum.operations > operations)
			operations = sum.operations;
		if (sum.operations == 0)
			continue;
		ret_figures[kind] = figure_of(&sum, sum.operations);
		print_kind((enum kind)kind, &sum, sum.operations, machine_time() - begun);
	}
}

/* ---- checking ---- */

/* What all share is read once, and the operations in progress at both ends count in part. */
#define SLIP 0.02

/* Lines read from other processors, and locked instructions, at most. */
static const struct limit {
	const char *workload;
	enum kind kind;
	unsigned callers;
	double fetched, locked;
} limits[] = {
	{ "rearm", KIND_REARM, 64, 0, 1 },
	{ "rearm-other", KIND_REARM, 64, 1, 1 },
	{ "request", KIND_ARM, 64, 0, 2 },
	{ "request", KIND_CANCEL, 64, 0, 2 },
};

/* The callers that the workload is checked with; 0: it is not. */
static unsigned check_callers(const char *name)
{
	for (unsigned i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (strcmp(limits[i].workload, name) == 0)
			return limits[i].callers;
	return 0;
}

static bool check_limits(const struct figure *figures)
{
	bool met = true;

	for (unsigned i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		const struct limit *limit = &limits[i];
		const struct figure *figure = &figures[limit->kind];

		if (strcmp(limit->workload, workload->name) != 0)
			continue;
		if (figure->fetched <= limit->fetched + SLIP &&
		    figure->locked <= limit->locked + SLIP)
			continue;
		(void)printf("%s, %s: %.3f lines and %.3f locked instructions; allowed are %.3f "
		             "and %.3f\n",
		             workload->name, kind_names[limit->kind], figure->fetched,
		             figure->locked, limit->fetched, limit->locked);
		met = false;
	}
	return met;
}

static int run_apart(unsigned count, bool check)
{
	int status;
	pid_t child;

	(void)fflush(stdout);
	child = fork();
	if (child == 0) {
		struct figure figures[KINDS] = { { .fetched = 0 } };

		callers_count = count;
		run_workload(figures);
		check = check && !check_limits(figures);
		(void)fflush(stdout);
		_exit(check ? 1 : 0);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0) {
		perror("transfers");
		exit(2);
	}
	return status;
}

static const char usage[] = "usage: transfers [--check] [--workload NAME] [--callers N]\n"
			    "                 [--hubs N] [--nodes N] [--places]\n";

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{ "check", no_argument, NULL, 'c' },
		{ "workload", required_argument, NULL, 'w' },
		{ "callers", required_argument, NULL, 'n' },
		{ "hubs", required_argument, NULL, 'h' },
		{ "nodes", required_argument, NULL, 'm' },
		{ "places", no_argument, NULL, 'p' },
		{ NULL, 0, NULL, 0 },
	};
	const char *name = NULL;
	unsigned from = 1, to = CALLERS_MAX;
	bool check = false;
	int option, bad = 0;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		unsigned number = optarg ? (unsigned)strtoul(optarg, NULL, 10) : 0;

		if (option == 'c')
			check = true;
		else if (option == 'p')
			options.places = true;
		else if (option == 'w')
			name = optarg;
		else if (option == 'n' && number >= 1 && number <= CALLERS_MAX)
			from = to = number;
		else if (option == 'h' && number >= 1 && number <= HUBS_MAX)
			options.hubs = number;
		else if (option == 'm' && number >= 1 && number <= HUBS_MAX)
			options.nodes = number;
		else {
			(void)fputs(usage, stderr);
			return 2;
		}
	}
	for (size_t i = 0; i < sizeof(workloads) / sizeof(workloads[0]); i++) {
		workload = &workloads[i];
		if (name && strcmp(name, workload->name) != 0)
			continue;
		if (check)
			from = to = check_callers(workload->name);
		if (from == 0)
			continue;
		(void)printf("%s: %s\n%10s  %-10s%8s%8s%8s%8s%8s%8s\n", workload->name,
		             workload->what, "callers", "operation", "read", "remote", "inval.",
		             "locked", "ticks", "busy");
		for (unsigned count = from; count <= to; count *= 2)
			bad += run_apart(count, check) != 0;
	}
	return bad == 0 ? 0 : 1;
}
