/* SPDX-License-Identifier: MIT */
/*
 * Measures expiries and memory.
 *
 * "burst" is the CPU time of owner and consumer, without arming, for N timers that are all due
 * within a millisecond. "lateness" is the time from a deadline until its callback, for timers that
 * expire within a second. "memory" is the growth of resident memory by each of N armed timers, with
 * what users embed in their records, and without the handles that they store.
 */
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "clocks.h"
#include "driver.h"
#include "histogram.h"
#include "randoms.h"

/* All timers must be armed before the first is due; the slowest services take 2 us to arm one. */
#define ARMING_NS_PER_TIMER 4000
#define ARMING_MIN_NS (200 * NS_PER_MS)
#define ARMING_MAX_NS (8 * NS_PER_SECOND)
#define LATE_START_NS (100 * NS_PER_MS)

void burst_measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers };
	struct randoms randoms = randoms_from(run->seed);
	uint64_t arming_ns = run->timers * (uint64_t)ARMING_NS_PER_TIMER, first_ns;
	struct meter meter;

	driver_open(run, &setup, NULL);
	if (arming_ns < ARMING_MIN_NS)
		arming_ns = ARMING_MIN_NS;
	if (arming_ns > ARMING_MAX_NS)
		arming_ns = ARMING_MAX_NS;
	first_ns = now_ns() + arming_ns;
	for (uint32_t i = 0; i < run->timers; i++) {
		uint64_t due_ns = first_ns + randoms_between(&randoms, 0, NS_PER_MS), now;

		if (i % TURN_OPS == 0)
			run->subject->tick();
		now = now_ns();
		if (now > first_ns)
			subject_fail("arming took longer than the first timer's delay", 0);
		subject_must(run->subject->arm(i, due_ns - now));
	}
	driver_settle();
	meter = meter_start();
	meter.start_ns = first_ns;
	driver_await(run->timers);
	meter_stop(&meter, result, run->timers);
}

/* ---- lateness ---- */

static struct histogram late;
static uint64_t *deadlines_ns;
static uint32_t early;

/* Only one thread makes callbacks. */
static void late_record(uint32_t timer)
{
	uint64_t now = now_ns(), deadline_ns = deadlines_ns[timer];

	early += now < deadline_ns;
	histogram_add(&late, now < deadline_ns ? 0 : now - deadline_ns);
}

void lateness_measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers };
	struct randoms randoms = randoms_from(run->seed);
	struct meter meter;

	(void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	driver_open(run, &setup, late_record);
	deadlines_ns = subject_allocate(run->timers, sizeof(*deadlines_ns));
	for (uint32_t i = 0; i < run->timers; i++) {
		uint64_t delay_ns =
			randoms_between(&randoms, LATE_START_NS, LATE_START_NS + NS_PER_SECOND);

		/* for each: a loop counts a delay from the next reading of its clock */
		deadlines_ns[i] = now_ns() + delay_ns;
		run->subject->tick();
		subject_must(run->subject->arm(i, delay_ns));
	}
	meter = meter_start();
	driver_await(run->timers);
	meter_stop(&meter, result, run->timers);
	result->ns = histogram_quantile_ns(&late, 0.5);
	result_add_durations(result, &late);
	result_add(result, "early", early);
}

/* ---- memory ---- */

static uint64_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long total = 0, resident = 0;

	if (!file || fscanf(file, "%llu %llu", &total, &resident) != 2)
		subject_fail("/proc/self/statm", 0);
	(void)fclose(file);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

void memory_measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers };
	uint64_t before = resident_bytes();
	struct meter meter;

	driver_open(run, &setup, NULL);
	meter = meter_start();
	driver_arm_all(60 * NS_PER_SECOND, 120 * NS_PER_SECOND, run->seed);
	driver_settle();
	meter_stop(&meter, result, run->timers);
	result_add(result, "bytes a timer",
	           (double)(resident_bytes() - before) / run->timers - run->subject->handle_bytes);
}
