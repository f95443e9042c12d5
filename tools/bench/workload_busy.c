/* SPDX-License-Identifier: MIT */
/*
 * The work of cross while timers expire. Threads arm deadlines of 1 to 100 ms and cancel half of
 * the timers, the owner expires timers, and a consumer drains. "tail" times each arm. "apply_ms" is
 * the time from the last call until the service had applied all calls. "inbox_max" is the largest
 * number of waiting entries.
 *
 * A thread uses its timers in turn. Nearly always, a timer has ended before its next use.
 */
#include "clocks.h"
#include "driver.h"
#include "histogram.h"
#include "randoms.h"
#include "team.h"
#include "workload_list.h"

#define DELAY_FROM_NS NS_PER_MS
#define DELAY_TO_NS (100 * NS_PER_MS)
#define CANCEL_LAG 64
/* More timers than any service can accept during the life of a timer. */
#define LIVE_MAX 8000000

struct busy_member {
	_Alignas(64) uint64_t ops;
	struct histogram *arms; /* NULL: arms are not timed */
};

struct busy {
	const struct subject *subject;
	uint32_t each; /* timers of a thread */
	uint64_t seed;
	uint64_t until_ns;
	struct busy_member members[TEAM_MAX];
};

static uint64_t delivered; /* written by the consumer */

static void busy_count(uint32_t timer)
{
	(void)timer;
	__atomic_store_n(&delivered, delivered + 1, __ATOMIC_RELAXED);
}

static void busy_arm(const struct busy *busy, struct busy_member *member, uint32_t timer,
                     uint64_t delay_ns)
{
	uint64_t start_ns;

	if (!member->arms) {
		subject_must(busy->subject->arm(timer, delay_ns));
		return;
	}
	start_ns = now_ns();
	subject_must(busy->subject->arm(timer, delay_ns));
	histogram_add(member->arms, now_ns() - start_ns);
}

static void busy_run(unsigned number, void *context)
{
	struct busy *busy = context;
	struct busy_member member = busy->members[number];
	struct randoms randoms = randoms_from(busy->seed + number);
	uint32_t first = number * busy->each;
	uint32_t i = 0;

	do {
		busy->subject->tick();
		for (unsigned turn = 0; turn < TURN_OPS; turn++) {
			busy_arm(busy, &member, first + i,
			         randoms_between(&randoms, DELAY_FROM_NS, DELAY_TO_NS));
			if (i % 2 == 0)
				busy->subject->cancel(first +
				                      (i + busy->each - CANCEL_LAG) % busy->each);
			i = i + 1 < busy->each ? i + 1 : 0;
		}
		member.ops += TURN_OPS * 3 / 2;
	} while (now_ns() < busy->until_ns);
	busy->members[number] = member;
}

static struct team_times busy_for(struct busy *busy, unsigned threads, uint64_t duration_ns)
{
	for (unsigned i = 0; i < threads; i++)
		busy->members[i].ops = 0;
	busy->seed += threads;
	busy->until_ns = now_ns() + duration_ns;
	return team_run(threads, busy_run, busy);
}

static void busy_measure(const struct run *run, struct result *result, struct histogram *histograms)
{
	static struct busy busy;
	struct subject_setup setup = { .timers = run->timers, .spare = LIVE_MAX, .cross = true };
	struct subject_counts counts = { 0 };
	uint64_t cpu_ns, done_ns, applied_ns, delivered_before, ops = 0;
	struct team_times times;

	busy.each = run->timers / run->threads;
	busy.seed = run->seed;
	busy.subject = driver_open(run, &setup, busy_count);
	(void)busy_for(&busy, run->threads, run->duration_ns / 2); /* warm up */
	driver_settle();
	for (unsigned i = 0; histograms && i < run->threads; i++)
		busy.members[i].arms = &histograms[i];
	cpu_ns = process_cpu_ns();
	delivered_before = __atomic_load_n(&delivered, __ATOMIC_RELAXED);
	times = busy_for(&busy, run->threads, run->duration_ns);
	done_ns = now_ns();
	driver_settle();
	applied_ns = now_ns();
	for (unsigned i = 0; i < run->threads; i++)
		ops += busy.members[i].ops;
	if (busy.subject->counts)
		busy.subject->counts(&counts);
	result->ns_per_op = (double)(applied_ns - times.start_ns) / (double)ops;
	result->cpu_ns_per_op = (double)(process_cpu_ns() - cpu_ns) / (double)ops;
	result_add(result, "mops", 1e3 / result->ns_per_op);
	result_add(result, "caller_ns", (double)times.cpu_ns / (double)ops);
	result_add(result, "inbox_max", (double)counts.inbox_max);
	result_add(result, "apply_ms", (double)(applied_ns - done_ns) * 1e-6);
	result_add(result, "delivered_share",
	           (double)(__atomic_load_n(&delivered, __ATOMIC_RELAXED) - delivered_before) /
	                   (double)ops);
}

static void busy_rate(const struct run *run, struct result *result)
{
	busy_measure(run, result, NULL);
}

static void busy_tail(const struct run *run, struct result *result)
{
	static struct histogram histograms[TEAM_MAX];

	busy_measure(run, result, histograms);
	for (unsigned i = 1; i < run->threads; i++)
		histogram_merge(&histograms[0], &histograms[i]);
	result_add(result, "p50_ns", histogram_quantile_ns(&histograms[0], 0.5));
	result_add(result, "p99_ns", histogram_quantile_ns(&histograms[0], 0.99));
	result_add(result, "p99.9_ns", histogram_quantile_ns(&histograms[0], 0.999));
	result_add(result, "max_us", (double)histograms[0].max_ns * 1e-3);
}

const struct workload workload_busy = {
	.name = "cross-busy",
	.what = "arm and cancel from several threads while timers expire",
	.needs = CAN_EXPIRE | CAN_CANCEL | CAN_CROSS,
	.shows = "mops",
	.timers = { 4000000 },
	.threads = { 2, 4 },
	.measure = busy_rate,
};

const struct workload workload_tail = {
	.name = "tail",
	.what = "as cross-busy; how long one arm takes",
	.needs = CAN_EXPIRE | CAN_CANCEL | CAN_CROSS,
	.shows = "p99.9_ns",
	.timers = { 4000000 },
	.threads = { 2 },
	.measure = busy_tail,
};
