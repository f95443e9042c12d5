/* SPDX-License-Identifier: MIT */
/*
 * Measures the lateness of expiries of 10^4 timers over a second. The consumer polls with epoll if
 * the subject can. The requested deadline is the clock, read just before the subject caches its
 * own, plus the delay. Lateness is the clock in the callback minus that deadline. A negative
 * lateness is early.
 */
#include <sys/prctl.h>

#include "clocks.h"
#include "driver.h"
#include "histogram.h"
#include "randoms.h"
#include "workload_list.h"

#define START_NS (100 * NS_PER_MS)

static struct histogram late;
static uint64_t *deadlines_ns;
static uint32_t expected;
static uint32_t delivered;
static uint32_t early;
static uint64_t earliest_ns; /* the largest earliness */

static void lateness_record(uint32_t timer)
{
	uint64_t now = now_ns();

	if (now < deadlines_ns[timer]) {
		early++;
		if (deadlines_ns[timer] - now > earliest_ns)
			earliest_ns = deadlines_ns[timer] - now;
		histogram_add(&late, 0);
	} else {
		histogram_add(&late, now - deadlines_ns[timer]);
	}
	__atomic_store_n(&delivered, delivered + 1, __ATOMIC_RELEASE);
}

static bool lateness_done(void)
{
	return __atomic_load_n(&delivered, __ATOMIC_ACQUIRE) >= expected;
}

static void lateness_measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers, .epoll = true };
	struct randoms randoms = randoms_from(run->seed);
	const struct subject *subject;
	struct subject_counts before = { 0 }, after = { 0 };
	uint64_t cpu_ns, cached_ns = 0;

	(void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	deadlines_ns = subject_allocate(run->timers, sizeof(*deadlines_ns));
	expected = run->timers;
	subject = driver_open(run, &setup, lateness_record);
	for (uint32_t i = 0; i < run->timers; i++) {
		uint64_t delay_ns = randoms_between(&randoms, START_NS, START_NS + NS_PER_SECOND);

		if (i % TURN_OPS == 0) {
			cached_ns = now_ns();
			subject->tick();
		}
		deadlines_ns[i] = cached_ns + delay_ns;
		subject_must(subject->arm(i, delay_ns));
	}
	if (subject->counts)
		subject->counts(&before);
	cpu_ns = process_cpu_ns();
	driver_run(lateness_done);
	cpu_ns = process_cpu_ns() - cpu_ns;
	if (subject->counts)
		subject->counts(&after);
	result->cpu_ns_per_op = (double)cpu_ns / run->timers;
	result->ns_per_op = histogram_quantile_ns(&late, 0.5);
	result_add(result, "p10_us", histogram_quantile_ns(&late, 0.1) * 1e-3);
	result_add(result, "p50_us", histogram_quantile_ns(&late, 0.5) * 1e-3);
	result_add(result, "p90_us", histogram_quantile_ns(&late, 0.9) * 1e-3);
	result_add(result, "p99_us", histogram_quantile_ns(&late, 0.99) * 1e-3);
	result_add(result, "p99.9_us", histogram_quantile_ns(&late, 0.999) * 1e-3);
	result_add(result, "max_us", (double)late.max_ns * 1e-3);
	result_add(result, "early", early);
	if (after.owner_wakeups > before.owner_wakeups)
		result_add(result, "cpu_ns_per_wakeup",
		           (double)cpu_ns / (double)(after.owner_wakeups - before.owner_wakeups));
	result_add(result, "earliest_us", (double)earliest_ns * 1e-3);
}

const struct workload workload_lateness = {
	.name = "lateness",
	.what = "how late timers come, 10^4 over a second (ns an op: the median)",
	.needs = CAN_BE_LATE,
	.shows = "p99_us",
	.timers = { 10000 },
	.threads = { 1 },
	.measure = lateness_measure,
};
