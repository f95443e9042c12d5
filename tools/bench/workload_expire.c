/* SPDX-License-Identifier: MIT */
/*
 * N timers expire and are delivered to one consumer. In "burst" all timers are due within a
 * millisecond, in "stream" they are spread evenly over a second. An operation is a delivery. The
 * cost of arming is not counted. The CPU time of owner and consumer counts.
 */
#include "clocks.h"
#include "driver.h"
#include "randoms.h"
#include "records.h"
#include "workload_list.h"

/*
 * All timers must be armed before the first is due. The slowest services need two microseconds for
 * an arm, so each timer gets twice this time.
 */
#define ARMING_NS_PER_TIMER 4000
#define ARMING_MIN_NS (200 * NS_PER_MS)
#define ARMING_MAX_NS (8 * NS_PER_SECOND)

static uint32_t expected;
static uint32_t delivered; /* written by the thread that calls back */

static void expire_count(uint32_t timer)
{
	(void)timer;
	__atomic_store_n(&delivered, delivered + 1, __ATOMIC_RELEASE); /* one thread at a time */
}

static void expire_touch(uint32_t timer)
{
	records_touch(timer);
	expire_count(timer);
}

static bool expire_done(void)
{
	return __atomic_load_n(&delivered, __ATOMIC_ACQUIRE) >= expected;
}

static void expire_measure(const struct run *run, struct result *result, uint64_t width_ns,
                           bool in_records)
{
	struct subject_setup setup = { .timers = run->timers, .records = in_records };
	struct randoms randoms = randoms_from(run->seed);
	const struct subject *subject =
		driver_open(run, &setup, in_records ? expire_touch : expire_count);
	uint64_t arming_ns = run->timers * (uint64_t)ARMING_NS_PER_TIMER;
	uint64_t first_ns, cpu_ns, now;

	if (arming_ns < ARMING_MIN_NS)
		arming_ns = ARMING_MIN_NS;
	if (arming_ns > ARMING_MAX_NS)
		arming_ns = ARMING_MAX_NS;
	expected = run->timers;
	first_ns = now_ns() + arming_ns;
	for (uint32_t i = 0; i < run->timers; i++) {
		if (i % TURN_OPS == 0)
			subject->tick();
		now = now_ns();
		if (now > first_ns)
			subject_fail("arming took longer than the first timer's delay", 0);
		subject_must(
			subject->arm(i, first_ns + randoms_between(&randoms, 0, width_ns) - now));
	}
	driver_settle();
	cpu_ns = process_cpu_ns();
	driver_run(expire_done);
	now = now_ns();
	result->cpu_ns_per_op = (double)(process_cpu_ns() - cpu_ns) / run->timers;
	result->ns_per_op = (double)(now - first_ns) / run->timers;
}

static void burst_measure(const struct run *run, struct result *result)
{
	expire_measure(run, result, NS_PER_MS, false);
}

static void stream_measure(const struct run *run, struct result *result)
{
	expire_measure(run, result, NS_PER_SECOND, false);
}

static void records_measure(const struct run *run, struct result *result)
{
	expire_measure(run, result, NS_PER_MS, true);
}

const struct workload workload_loop_expire = {
	.name = "loop-expire",
	.what = "in one loop: deliver a timer and touch its record, all due within a millisecond",
	.needs = CAN_EXPIRE | CAN_HOLD_RECORDS,
	.timers = { 1000000 },
	.threads = { 1 },
	.measure = records_measure,
};

const struct workload workload_burst = {
	.name = "burst",
	.what = "deliver a timer, all due within a millisecond",
	.needs = CAN_EXPIRE,
	.timers = { 1000000, 10000000 },
	.threads = { 1 },
	.measure = burst_measure,
};

const struct workload workload_stream = {
	.name = "stream",
	.what = "deliver a timer, spread over a second",
	.needs = CAN_EXPIRE,
	.timers = { 1000000, 10000000 },
	.threads = { 1 },
	.measure = stream_measure,
};
