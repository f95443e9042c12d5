/* SPDX-License-Identifier: MIT */
/*
 * Runs the callers of a workload. In a turn, a caller caches the time and makes about 64 calls. It
 * works on a copy of its state on its own stack, because two states in a cache line would slow both
 * callers down.
 */
#include "callers.h"

#include "clocks.h"
#include "driver.h"
#include "thread_team.h"

static const struct calls *calls;
static uint64_t until_ns;
static struct caller callers[TEAM_MAX];

static void caller_arm(unsigned member, void *context)
{
	struct caller *caller = &callers[member];
	const struct subject *subject = caller->subject;
	uint32_t timers = calls->from_ns > 0 ? caller->count : 0;
	uint32_t requests = calls->request_ns > 0 ? calls->requests : 0;

	(void)context;
	for (uint32_t i = 0; i < timers + requests; i++) {
		if (i % TURN_OPS == 0)
			subject->tick();
		subject_must(
			i < timers
				? subject->arm(caller->first + i,
		                               randoms_between(&caller->randoms, calls->from_ns,
		                                               calls->to_ns))
				: subject->arm(caller->requests + i - timers, calls->request_ns));
	}
}

static void caller_run(unsigned member, void *context)
{
	struct caller mine = callers[member];

	(void)context;
	mine.ops = 0;
	do {
		mine.subject->tick();
		mine.ops += calls->turn(&mine);
	} while (now_ns() < until_ns);
	callers[member] = mine;
}

static void caller_run_alone(void *context)
{
	caller_run(0, context);
}

static void callers_open(const struct run *run)
{
	struct subject_setup setup = calls->setup;
	uint32_t each = run->timers / run->threads;

	setup.timers = run->timers + run->threads * calls->requests;
	setup.cross = setup.cross || run->threads > 1;
	driver_open(run, &setup, NULL);
	for (unsigned i = 0; i < run->threads; i++)
		callers[i] = (struct caller){
			.subject = run->subject,
			.first = i * each,
			.count = each,
			.requests = run->timers + i * calls->requests,
			.randoms = randoms_from(run->seed + i),
		};
	if (run->threads > 1)
		(void)team_run(run->threads, caller_arm, NULL);
	else
		caller_arm(0, NULL);
	driver_settle();
}

static struct team_times callers_run(unsigned threads, uint64_t duration_ns)
{
	struct team_times times = { .start_ns = now_ns(), .cpu_ns = thread_cpu_ns() };

	until_ns = times.start_ns + duration_ns;
	if (threads > 1)
		return team_run(threads, caller_run, NULL);
	driver_within(caller_run_alone, NULL);
	times.cpu_ns = thread_cpu_ns() - times.cpu_ns;
	return times;
}

uint64_t callers_measure(const struct run *run, struct result *result, const struct calls *wanted)
{
	uint64_t done_ns, applied_ns, cpu_ns, ops = 0;
	struct team_times team;

	calls = wanted;
	callers_open(run);
	(void)callers_run(run->threads, run->duration_ns / 4); /* warms up */
	driver_settle();
	cpu_ns = process_cpu_ns();
	team = callers_run(run->threads, run->duration_ns);
	done_ns = now_ns();
	driver_settle();
	applied_ns = now_ns();
	cpu_ns = process_cpu_ns() - cpu_ns;
	for (unsigned i = 0; i < run->threads; i++)
		ops += callers[i].ops;
	result->ns = (double)((calls->until_applied ? applied_ns : done_ns) - team.start_ns) /
	             (double)ops;
	result->cpu_ns = (double)cpu_ns / (double)ops;
	if ((run->subject->can & OWNER) != 0)
		result_add(result, "callers' CPU ns", (double)team.cpu_ns / (double)ops);
	return applied_ns - done_ns;
}
