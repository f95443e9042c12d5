/* SPDX-License-Identifier: MIT */
/*
 * Measures heartbeats. It re-arms random timers among N, all with the same timeout of a minute. It
 * runs with one thread or several. In "refresh" each thread has timers that it armed itself. In
 * "neighbours" one thread armed the timers, which are dealt to all threads in turn, so neighbouring
 * timers belong to different threads.
 */
#include <string.h>

#include "clocks.h"
#include "driver.h"
#include "randoms.h"
#include "records.h"
#include "team.h"
#include "workload_list.h"

#define TIMEOUT_NS (60 * NS_PER_SECOND)

/* One thread's share of the timers. */
struct refresher {
	_Alignas(64) uint32_t first; /* the thread's first timer */
	uint32_t stride;             /* distance between two timers of the thread */
	uint32_t count;              /* number of the thread's timers */
	struct randoms randoms;
	uint64_t ops;
};

struct refresh {
	const struct subject *subject;
	uint64_t until_ns;
	bool records;
	struct refresher refreshers[TEAM_MAX];
};

static void refresher_arm(unsigned member, void *context)
{
	struct refresh *refresh = context;
	const struct refresher *refresher = &refresh->refreshers[member];

	for (uint32_t i = 0; i < refresher->count; i++) {
		if (i % TURN_OPS == 0)
			refresh->subject->tick();
		subject_must(refresh->subject->arm(refresher->first + i * refresher->stride,
		                                   TIMEOUT_NS));
	}
}

static void refresher_run(unsigned member, void *context)
{
	struct refresh *refresh = context;
	struct refresher *refresher = &refresh->refreshers[member];
	struct refresher mine = *refresher;
	const struct subject *subject = refresh->subject;

	do {
		subject->tick();
		for (unsigned i = 0; i < TURN_OPS; i++)
			subject_must(subject->rearm(
				mine.first + mine.stride * randoms_below(&mine.randoms, mine.count),
				TIMEOUT_NS));
		mine.ops += TURN_OPS;
	} while (now_ns() < refresh->until_ns);
	*refresher = mine;
}

/* The same for the timers of one event loop, in the records of its connections. */
static void refresh_records(void *context)
{
	struct refresh *refresh = context;
	struct refresher mine = refresh->refreshers[0];
	const struct subject *subject = refresh->subject;

	do {
		subject->tick();
		for (unsigned i = 0; i < TURN_OPS; i++) {
			uint32_t timer = randoms_below(&mine.randoms, mine.count);

			records_touch(timer);
			subject_must(subject->rearm(timer, TIMEOUT_NS));
		}
		mine.ops += TURN_OPS;
	} while (now_ns() < refresh->until_ns);
	refresh->refreshers[0] = mine;
}

static void refresh_alone(void *context)
{
	refresher_run(0, context);
}

static void refresh_for(struct refresh *refresh, unsigned threads, uint64_t duration_ns)
{
	refresh->until_ns = now_ns() + duration_ns;
	for (unsigned i = 0; i < threads; i++)
		refresh->refreshers[i].ops = 0;
	if (threads == 1)
		driver_within(refresh->records ? refresh_records : refresh_alone, refresh);
	else
		(void)team_run(threads, refresher_run, refresh);
}

static void refresh_measure(const struct run *run, struct result *result, bool neighbours,
                            bool in_records)
{
	static struct refresh refresh;
	struct subject_setup setup = { .timers = run->timers,
		                       .cross = run->threads > 1,
		                       .records = in_records };
	uint64_t start_ns, cpu_ns, ops = 0;
	uint32_t each = run->timers / run->threads;

	refresh.records = in_records;
	refresh.subject = driver_open(run, &setup, NULL);
	for (unsigned i = 0; i < run->threads; i++)
		refresh.refreshers[i] = (struct refresher){
			.first = neighbours ? i : i * each,
			.stride = neighbours ? run->threads : 1,
			.count = each,
			.randoms = randoms_from(run->seed + i),
		};
	if (neighbours)
		driver_arm_all(run->timers, TIMEOUT_NS, TIMEOUT_NS, run->seed);
	else if (run->threads > 1)
		(void)team_run(run->threads, refresher_arm, &refresh);
	else
		refresher_arm(0, &refresh);
	driver_settle();
	refresh_for(&refresh, run->threads, run->duration_ns / 4); /* warm up */
	driver_settle();
	cpu_ns = process_cpu_ns();
	start_ns = now_ns();
	refresh_for(&refresh, run->threads, run->duration_ns);
	if (run->threads > 1)
		driver_settle();
	for (unsigned i = 0; i < run->threads; i++)
		ops += refresh.refreshers[i].ops;
	result->ns_per_op = (double)(now_ns() - start_ns) / (double)ops;
	result->cpu_ns_per_op = (double)(process_cpu_ns() - cpu_ns) / (double)ops;
}

static void refresh_own(const struct run *run, struct result *result)
{
	refresh_measure(run, result, false, false);
}

static void refresh_neighbours(const struct run *run, struct result *result)
{
	refresh_measure(run, result, true, false);
}

static void refresh_in_records(const struct run *run, struct result *result)
{
	refresh_measure(run, result, false, true);
}

const struct workload workload_loop_refresh = {
	.name = "loop-refresh",
	.what = "in one loop: touch a random record, re-arm its timer to a minute from now",
	.needs = CAN_REARM | CAN_HOLD_RECORDS,
	.timers = { 10000, 1000000 },
	.threads = { 1 },
	.measure = refresh_in_records,
};

const struct workload workload_refresh = {
	.name = "refresh",
	.what = "re-arm a random timer to a minute from now",
	.needs = CAN_REARM,
	.timers = { 10000, 100000, 1000000, 10000000 },
	.threads = { 1, 2 },
	.measure = refresh_own,
};

const struct workload workload_neighbours = {
	.name = "neighbours",
	.what = "re-arm a random timer whose neighbours other threads re-arm",
	.needs = CAN_REARM | CAN_CROSS,
	.timers = { 1000000 },
	.threads = { 2 },
	.measure = refresh_neighbours,
};
