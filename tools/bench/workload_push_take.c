/* SPDX-License-Identifier: MIT */
/*
 * The benchmark of delay queues. It pushes N elements, the i-th with a delay of i ns, and takes all
 * of them. One thread does this. An operation is the push and the take of an element. The workload
 * counts allocations too.
 */
#include "allocations.h"
#include "clocks.h"
#include "driver.h"
#include "workload_list.h"

static uint32_t expected;
static uint32_t taken;

static void push_take_count(uint32_t timer)
{
	(void)timer;
	__atomic_store_n(&taken, taken + 1, __ATOMIC_RELEASE);
}

static bool push_take_done(void)
{
	return __atomic_load_n(&taken, __ATOMIC_ACQUIRE) >= expected;
}

/*
 * First push all elements and cancel them, so that the memory is resident, as in a queue that has
 * been used.
 */
static void push_take_warm(const struct subject *subject, uint32_t timers)
{
	driver_arm_all(timers, 60 * NS_PER_SECOND, 60 * NS_PER_SECOND, 0);
	for (uint32_t i = 0; i < timers; i++)
		subject->cancel(i);
	driver_settle();
}

static void push_take_measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers, .delay_queue = true };
	const struct subject *subject = driver_open(run, &setup, push_take_count);
	uint64_t start_ns, cpu_ns, pushed_ns;

	expected = run->timers;
	push_take_warm(subject, run->timers);
	allocations_start();
	cpu_ns = process_cpu_ns();
	start_ns = now_ns();
	for (uint32_t i = 0; i < run->timers; i++) {
		if (i % TURN_OPS == 0)
			subject->tick();
		subject_must(subject->arm(i, i));
	}
	pushed_ns = now_ns();
	driver_run(push_take_done);
	result->ns_per_op = (double)(now_ns() - start_ns) / run->timers;
	result->cpu_ns_per_op = (double)(process_cpu_ns() - cpu_ns) / run->timers;
	result_add(result, "allocations_per_op", (double)allocations_count() / run->timers);
	result_add(result, "push_ns", (double)(pushed_ns - start_ns) / run->timers);
}

const struct workload workload_push_take = {
	.name = "push-and-take",
	.what = "push an element with a delay of i ns, and take it",
	.needs = CAN_PUSH_TAKE,
	.shows = "allocations_per_op",
	.timers = { 1000000 },
	.threads = { 1 },
	.measure = push_take_measure,
};
