/* SPDX-License-Identifier: MIT */
/*
 * Cancels a random timer of N and arms a new timer, one to two minutes away. CPU time counts until
 * the service has applied all calls. "caller_ns" is the CPU time of only the calling thread.
 */
#include "clocks.h"
#include "driver.h"
#include "randoms.h"
#include "workload_list.h"

#define DELAY_FROM_NS (60 * NS_PER_SECOND)
#define DELAY_TO_NS (120 * NS_PER_SECOND)

struct churn {
	const struct subject *subject;
	uint32_t timers;
	uint64_t until_ns;
	uint64_t ops;
	struct randoms randoms;
};

static void churn_run(void *context)
{
	struct churn *churn = context;
	struct randoms randoms = churn->randoms;
	const struct subject *subject = churn->subject;

	churn->ops = 0;
	do {
		subject->tick();
		for (unsigned i = 0; i < TURN_OPS; i++) {
			uint32_t timer = randoms_below(&randoms, churn->timers);

			subject->cancel(timer);
			subject_must(subject->arm(
				timer, randoms_between(&randoms, DELAY_FROM_NS, DELAY_TO_NS)));
		}
		churn->ops += TURN_OPS;
	} while (now_ns() < churn->until_ns);
	churn->randoms = randoms;
}

static void churn_measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers };
	struct churn churn = { .timers = run->timers, .randoms = randoms_from(run->seed) };
	uint64_t start_ns, thread_ns, cpu_ns;

	churn.subject = driver_open(run, &setup, NULL);
	driver_arm_all(run->timers, DELAY_FROM_NS, DELAY_TO_NS, run->seed);
	driver_settle();
	churn.until_ns = now_ns() + run->duration_ns / 4;
	driver_within(churn_run, &churn); /* warm up */
	driver_settle();
	cpu_ns = process_cpu_ns();
	start_ns = now_ns();
	thread_ns = thread_cpu_ns();
	churn.until_ns = start_ns + run->duration_ns;
	driver_within(churn_run, &churn);
	result->ns_per_op = (double)(now_ns() - start_ns) / (double)churn.ops;
	thread_ns = thread_cpu_ns() - thread_ns;
	driver_settle();
	result->cpu_ns_per_op = (double)(process_cpu_ns() - cpu_ns) / (double)churn.ops;
	result_add(result, "caller_ns", (double)thread_ns / (double)churn.ops);
}

const struct workload workload_churn = {
	.name = "churn",
	.what = "cancel a random timer and arm a new one",
	.needs = CAN_CANCEL,
	.shows = "caller_ns",
	.timers = { 10000, 100000, 1000000, 10000000 },
	.threads = { 1 },
	.measure = churn_measure,
};
