/* SPDX-License-Identifier: MIT */
/*
 * Batches: the operations of refresh and churn for 32 timers at once, as in an event loop with 32
 * ready connections. A subject with calls for many timers gets the batch. A subject without such
 * calls gets one timer after the other, each as soon as it is picked. A batch has one random timer
 * of each 32nd part of the N, so it contains no timer twice. An operation is the work for one
 * timer.
 */
#include "clocks.h"
#include "driver.h"
#include "randoms.h"
#include "workload_list.h"

#define BATCH 32
#define REARM_NS (60 * NS_PER_SECOND)
#define DELAY_FROM_NS (60 * NS_PER_SECOND)
#define DELAY_TO_NS (120 * NS_PER_SECOND)

struct batch {
	const struct subject *subject;
	uint32_t part; /* timers in a 32nd part */
	uint64_t until_ns;
	uint64_t ops;
	struct randoms randoms;
};

static uint32_t batch_pick(const struct batch *batch, struct randoms *randoms, uint32_t i)
{
	return i * batch->part + randoms_below(randoms, batch->part);
}

static void rearm_batch(const struct batch *batch, struct randoms *randoms)
{
	const struct subject *subject = batch->subject;
	uint32_t timers[BATCH];

	if (!subject->rearm_many) {
		for (uint32_t i = 0; i < BATCH; i++)
			subject_must(subject->rearm(batch_pick(batch, randoms, i), REARM_NS));
		return;
	}
	for (uint32_t i = 0; i < BATCH; i++)
		timers[i] = batch_pick(batch, randoms, i);
	subject_must(subject->rearm_many(timers, BATCH, REARM_NS));
}

static void churn_batch(const struct batch *batch, struct randoms *randoms)
{
	const struct subject *subject = batch->subject;
	uint64_t delays_ns[BATCH];
	uint32_t timers[BATCH];

	if (!subject->arm_many) {
		for (uint32_t i = 0; i < BATCH; i++) {
			uint32_t timer = batch_pick(batch, randoms, i);

			subject->cancel(timer);
			subject_must(subject->arm(
				timer, randoms_between(randoms, DELAY_FROM_NS, DELAY_TO_NS)));
		}
		return;
	}
	for (uint32_t i = 0; i < BATCH; i++) {
		timers[i] = batch_pick(batch, randoms, i);
		delays_ns[i] = randoms_between(randoms, DELAY_FROM_NS, DELAY_TO_NS);
	}
	subject->cancel_many(timers, BATCH);
	subject_must(subject->arm_many(timers, delays_ns, BATCH));
}

static void rearm_run(void *context)
{
	struct batch *batch = context;
	struct randoms randoms = batch->randoms;

	batch->ops = 0;
	do {
		batch->subject->tick();
		rearm_batch(batch, &randoms);
		batch->ops += BATCH;
	} while (batch->ops % (32 * BATCH) != 0 || now_ns() < batch->until_ns);
	batch->randoms = randoms;
}

static void churn_run(void *context)
{
	struct batch *batch = context;
	struct randoms randoms = batch->randoms;

	batch->ops = 0;
	do {
		batch->subject->tick();
		churn_batch(batch, &randoms);
		batch->ops += BATCH;
	} while (batch->ops % (32 * BATCH) != 0 || now_ns() < batch->until_ns);
	batch->randoms = randoms;
}

static void batch_measure(const struct run *run, struct result *result, void (*body)(void *),
                          uint64_t delay_to_ns)
{
	struct subject_setup setup = { .timers = run->timers };
	struct batch batch = { .part = run->timers / BATCH, .randoms = randoms_from(run->seed) };
	uint64_t start_ns, caller_ns, cpu_ns;

	batch.subject = driver_open(run, &setup, NULL);
	driver_arm_all(run->timers, DELAY_FROM_NS, delay_to_ns, run->seed);
	driver_settle();
	batch.until_ns = now_ns() + run->duration_ns / 4;
	driver_within(body, &batch); /* warm up */
	driver_settle();
	cpu_ns = process_cpu_ns();
	caller_ns = thread_cpu_ns();
	start_ns = now_ns();
	batch.until_ns = start_ns + run->duration_ns;
	driver_within(body, &batch);
	result->ns_per_op = (double)(now_ns() - start_ns) / (double)batch.ops;
	caller_ns = thread_cpu_ns() - caller_ns;
	driver_settle();
	result->cpu_ns_per_op = (double)(process_cpu_ns() - cpu_ns) / (double)batch.ops;
	result_add(result, "caller_ns", (double)caller_ns / (double)batch.ops);
}

static void batch_rearm_measure(const struct run *run, struct result *result)
{
	batch_measure(run, result, rearm_run, DELAY_FROM_NS);
}

static void batch_churn_measure(const struct run *run, struct result *result)
{
	batch_measure(run, result, churn_run, DELAY_TO_NS);
}

const struct workload workload_batch_rearm = {
	.name = "batch-rearm",
	.what = "re-arm 32 random timers to a minute from now; an operation is one of them",
	.needs = CAN_REARM | CAN_BATCH,
	.shows = "caller_ns",
	.timers = { 1000000 },
	.threads = { 1 },
	.measure = batch_rearm_measure,
};

const struct workload workload_batch_churn = {
	.name = "batch-churn",
	.what = "cancel 32 random timers and arm 32 new ones; an operation is one pair",
	.needs = CAN_CANCEL | CAN_BATCH,
	.shows = "caller_ns",
	.timers = { 1000000 },
	.threads = { 1 },
	.measure = batch_churn_measure,
};
