/* SPDX-License-Identifier: MIT */
/*
 * Measures "cross". Each thread arms its own timers with delays of 1 to 60 s. After every second
 * arm, the thread cancels the timer that it armed CANCEL_LAG arms before. The measurement ends when
 * the service has applied all calls. An operation is an arm or a cancel.
 */
#include "clocks.h"
#include "randoms.h"
#include "thread_team.h"
#include "workload_functions.h"
#include "workload_steps.h"

#define DELAY_FROM_NS NS_PER_SECOND
#define DELAY_TO_NS (60 * NS_PER_SECOND)
/* A thread arms this number of further timers before it cancels a timer. */
#define CANCEL_LAG 64

struct cross {
	const struct subject *subject;
	uint32_t each; /* number of timers of each thread */
	uint64_t seed;
};

static void crosser_run(unsigned member, void *context)
{
	const struct cross *cross = context;
	const struct subject *subject = cross->subject;
	struct randoms randoms = randoms_from(cross->seed + member);
	uint32_t first = member * cross->each;

	for (uint32_t i = 0; i < cross->each; i++) {
		if (i % TURN_OPS == 0)
			subject->tick();
		subject_must(subject->arm(first + i,
		                          randoms_between(&randoms, DELAY_FROM_NS, DELAY_TO_NS)));
		if (i % 2 == 0 && i >= CANCEL_LAG)
			subject->cancel(first + i - CANCEL_LAG);
	}
}

static void cross_cancel_all(const struct subject *subject, uint32_t timers)
{
	for (uint32_t i = 0; i < timers; i++)
		subject->cancel(i);
	driver_settle();
}

void cross_measure(const struct run *run, struct result *result)
{
	struct cross cross = { .each = run->timers / run->threads, .seed = run->seed };
	struct subject_setup setup = { .timers = run->timers, .cross = true };
	uint64_t wall_ns = 0, cpu_ns = 0, callers_ns = 0, settle_ns = 0, ops = 0;

	cross.subject = driver_open(run, &setup, NULL);
	/* Arm all timers once as a warm-up. */
	driver_arm_all(run->timers, DELAY_FROM_NS, DELAY_TO_NS, run->seed);
	driver_settle();
	while (wall_ns < run->duration_ns) {
		uint64_t cpu_start_ns, done_ns, applied_ns;
		struct team_times times;

		cross_cancel_all(cross.subject, run->timers);
		cpu_start_ns = process_cpu_ns();
		times = team_run(run->threads, crosser_run, &cross);
		done_ns = now_ns();
		driver_settle();
		applied_ns = now_ns();
		wall_ns += applied_ns - times.start_ns;
		settle_ns += applied_ns - done_ns;
		cpu_ns += process_cpu_ns() - cpu_start_ns;
		callers_ns += times.cpu_ns;
		ops += (uint64_t)cross.each * run->threads * 3 / 2;
		cross.seed++;
	}
	result->ns_per_op = (double)wall_ns / (double)ops;
	result->cpu_ns_per_op = (double)cpu_ns / (double)ops;
	result_add(result, "mops", 1e3 / result->ns_per_op);
	result_add(result, "caller_ns", (double)callers_ns / (double)ops);
	result_add(result, "inbox_max", (double)driver_counts().inbox_max);
	result_add(result, "settle_share", (double)settle_ns / (double)wall_ns);
}
