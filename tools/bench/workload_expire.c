/* SPDX-License-Identifier: MIT */
/*
 * Measures deliveries of N timers to one consumer: the CPU time of owner and consumer, without
 * arming. In "burst" all are due within a millisecond, in "stream" spread evenly over a second.
 *
 * "push-and-take" measures delay queues: one thread pushes N elements, the i-th with a delay of i
 * ns, and takes all. An operation is one push and one take. Allocations are counted too.
 */
#include "allocations.h"
#include "clocks.h"
#include "embedding_objects.h"
#include "randoms.h"
#include "workload_functions.h"
#include "workload_steps.h"

/*
 * All timers must be armed before the first timer is due. The slowest services need two
 * microseconds for an arm. Therefore the first delay is four microseconds multiplied by the number
 * of timers.
 */
#define ARMING_NS_PER_TIMER 4000
#define ARMING_MIN_NS (200 * NS_PER_MS)
#define ARMING_MAX_NS (8 * NS_PER_SECOND)

static void expire_measure(const struct run *run, struct result *result, uint64_t width_ns,
                           bool in_records)
{
	struct subject_setup setup = { .timers = run->timers, .records = in_records };
	struct randoms randoms = randoms_from(run->seed);
	const struct subject *subject = driver_open(run, &setup, in_records ? records_touch : NULL);
	uint64_t arming_ns = run->timers * (uint64_t)ARMING_NS_PER_TIMER;
	struct meter meter;
	uint64_t first_ns;

	if (arming_ns < ARMING_MIN_NS)
		arming_ns = ARMING_MIN_NS;
	if (arming_ns > ARMING_MAX_NS)
		arming_ns = ARMING_MAX_NS;
	first_ns = now_ns() + arming_ns;
	for (uint32_t i = 0; i < run->timers; i++) {
		uint64_t due_ns = first_ns + randoms_between(&randoms, 0, width_ns), now;

		if (i % TURN_OPS == 0)
			subject->tick();
		now = now_ns();
		if (now > first_ns)
			subject_fail("arming took longer than the first timer's delay", 0);
		subject_must(subject->arm(i, due_ns - now));
	}
	driver_settle();
	meter = meter_start();
	meter.start_ns = first_ns;
	driver_await(run->timers);
	meter_stop(&meter, result, run->timers);
}

void burst_measure(const struct run *run, struct result *result)
{
	expire_measure(run, result, NS_PER_MS, false);
}

void stream_measure(const struct run *run, struct result *result)
{
	expire_measure(run, result, NS_PER_SECOND, false);
}

void loop_expire_measure(const struct run *run, struct result *result)
{
	expire_measure(run, result, NS_PER_MS, true);
}

void push_take_measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers, .delay_queue = true };
	const struct subject *subject = driver_open(run, &setup, NULL);
	struct meter meter;
	uint64_t pushed_ns;

	/* Push and cancel all elements once, so that the memory is resident. */
	driver_arm_all(run->timers, 60 * NS_PER_SECOND, 60 * NS_PER_SECOND, 0);
	for (uint32_t i = 0; i < run->timers; i++)
		subject->cancel(i);
	driver_settle();
	allocations_start();
	meter = meter_start();
	for (uint32_t i = 0; i < run->timers; i++) {
		if (i % TURN_OPS == 0)
			subject->tick();
		subject_must(subject->arm(i, i));
	}
	pushed_ns = now_ns();
	driver_await(run->timers);
	meter_stop(&meter, result, run->timers);
	result_add(result, "allocations_per_op", (double)allocations_count() / run->timers);
	result_add(result, "push_ns", (double)(pushed_ns - meter.start_ns) / run->timers);
}
