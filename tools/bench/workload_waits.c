/* SPDX-License-Identifier: MIT */
/*
 * Measures how long something takes, of which the median, the 99th percentile and the largest are
 * printed. "lateness" is the time from a deadline until its callback, for timers that expire within
 * a second. In "durable", T threads put tasks that are due an hour later. In "cycle", each puts a
 * task that is due at once, takes a task, perhaps of another thread, and acknowledges it. Each of
 * these calls returns when its change is on stable storage.
 */
#include <stdlib.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "randoms.h"
#include "workload.h"

#define WAITS_MAX (1u << 22)
#define LATE_START_NS (100 * NS_PER_MS)
#define DELAY_NS (3600 * NS_PER_S)
#define DURABLE_NS (1500 * NS_PER_MS) /* long, because a sync of a disk takes milliseconds */

static uint64_t *waits_ns;
static uint32_t waits_count;

static void waits_add(uint64_t ns)
{
	uint32_t index = __atomic_fetch_add(&waits_count, 1, __ATOMIC_RELEASE);

	if (index >= WAITS_MAX)
		subject_fail("more operations than there is room for", 0);
	waits_ns[index] = ns;
}

static int compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static void waits_report(void)
{
	qsort(waits_ns, waits_count, sizeof(*waits_ns), compare);
	report("p50 us", (double)waits_ns[waits_count / 2] / NS_PER_US);
	report("p99 us", (double)waits_ns[(uint64_t)waits_count * 99 / 100] / NS_PER_US);
	report("max us", (double)waits_ns[waits_count - 1] / NS_PER_US);
}

/* ---- lateness ---- */

static uint64_t *deadlines_ns;
static uint32_t early, timers;

/* Only one thread makes callbacks. */
static void late_record(uint32_t timer)
{
	uint64_t now = clock_monotonic_ns(), deadline_ns = deadlines_ns[timer];

	early += now < deadline_ns;
	waits_add(now < deadline_ns ? 0 : now - deadline_ns);
}

static bool all_expired(void)
{
	return __atomic_load_n(&waits_count, __ATOMIC_ACQUIRE) >= timers;
}

void lateness_measure(const struct run *run)
{
	struct subject_setup setup = { .timers = run->timers };
	struct randoms randoms = randoms_from(run->seed);
	uint64_t begin_ns;

	(void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	timers = run->timers;
	deadlines_ns = subject_allocate(timers, sizeof(*deadlines_ns));
	waits_ns = subject_allocate(WAITS_MAX, sizeof(*waits_ns));
	subject_expired = late_record;
	driver_open(run, &setup);
	for (uint32_t i = 0; i < timers; i++) {
		uint64_t delay_ns =
			randoms_between(&randoms, LATE_START_NS, LATE_START_NS + NS_PER_S);

		/* for each: a loop counts a delay from the next reading of its clock */
		deadlines_ns[i] = clock_monotonic_ns() + delay_ns;
		run->subject->tick();
		subject_must(run->subject->arm(i, delay_ns));
	}
	begin_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	run->subject->run(all_expired);
	report("CPU ns",
	       (double)(clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns) / (double)timers);
	report("early", early);
	waits_report();
}

/* ---- durable tasks ---- */

static const struct subject *subject;
static bool cycles;

static void work(unsigned member)
{
	uint64_t before = clock_monotonic_ns(), end = before + DURABLE_NS;

	(void)member;
	while (before < end) {
		uint64_t after;

		subject_must(subject->arm(0, cycles ? 0 : DELAY_NS));
		if (cycles)
			subject_must(subject->finish());
		after = clock_monotonic_ns();
		waits_add(after - before);
		before = after;
	}
}

void durable_measure(const struct run *run)
{
	struct subject_setup setup = { .timers = run->timers, .threads = run->threads };
	struct meter meter;

	subject = run->subject;
	waits_ns = subject_allocate(WAITS_MAX, sizeof(*waits_ns));
	driver_open(run, &setup);
	meter = meter_start();
	meter.start_ns = team_run((subject->can & ALONE) != 0 ? 1 : run->threads, work);
	meter_stop(&meter, waits_count);
	waits_report();
}

void cycle_measure(const struct run *run)
{
	cycles = true;
	durable_measure(run);
}
