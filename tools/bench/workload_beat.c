/* SPDX-License-Identifier: MIT */
/*
 * Measures the owner's rest: its work while timers move and no timer expires.
 *
 * In "beat", N connections receive data at random intervals of 0.5 to 1.5 s, and each message
 * re-arms the connection's idle timeout of 3 s. In "beat-cancel", 10^5 requests a second have a
 * timeout of 30 s, and a request ends when N more have begun. "beat-late" is beat with 10^4
 * additional timers that expire, whose lateness is recorded.
 *
 * The caller is a loop that turns once a millisecond. An operation is a re-arm (or a pair of arm
 * and cancel), timed without the caller's sleep. "owner_cpu_us" is the CPU time a second of all
 * threads except the caller. The warm-up is longer than the timeout, so the times for which timers
 * were first scheduled pass during it.
 */
#include <sys/prctl.h>

#include "clocks.h"
#include "driver.h"
#include "histogram.h"
#include "randoms.h"
#include "workload_list.h"

#define BEAT_FROM_MS 500
#define BEAT_TO_MS 1500
#define IDLE_NS (3 * NS_PER_SECOND)
#define BEAT_WARM_MS 4000
#define BEAT_MS 6000

#define REQUESTS_A_MS 100
#define REQUEST_NS (30 * NS_PER_SECOND)
#define REQUEST_WARM_MS 31000
#define REQUEST_MS 5000

#define LATE_TIMERS 10000

#define CALENDAR_MS 2048 /* a power of two, larger than the longest interval */
#define NO_TIMER UINT32_MAX

static struct beat {
	const struct subject *subject;
	struct randoms randoms;
	uint32_t timers;
	uint32_t *next;              /* for each timer: the next in the list of its millisecond */
	uint32_t first[CALENDAR_MS]; /* for each millisecond: the first timer to re-arm */
	uint32_t oldest;             /* the request that ends next */
	uint64_t ops;
	uint64_t ops_ns; /* time in the subject's calls */
} beat;

/* ---- the loop's work in a millisecond ---- */

static void calendar_put(uint32_t timer, uint32_t now_ms)
{
	uint32_t beat_ms =
		now_ms + BEAT_FROM_MS + randoms_below(&beat.randoms, BEAT_TO_MS - BEAT_FROM_MS);
	uint32_t *first = &beat.first[beat_ms % CALENDAR_MS];

	beat.next[timer] = *first;
	*first = timer;
}

static void beat_turn(uint32_t now_ms)
{
	uint32_t timer = beat.first[now_ms % CALENDAR_MS];

	beat.first[now_ms % CALENDAR_MS] = NO_TIMER;
	for (uint32_t next; timer != NO_TIMER; timer = next) {
		next = beat.next[timer];
		subject_must(beat.subject->rearm(timer, IDLE_NS));
		calendar_put(timer, now_ms);
		beat.ops++;
	}
}

static void request_turn(uint32_t now_ms)
{
	(void)now_ms;
	for (unsigned i = 0; i < REQUESTS_A_MS; i++) {
		beat.subject->cancel(beat.oldest);
		subject_must(beat.subject->arm(beat.oldest, REQUEST_NS));
		beat.oldest = beat.oldest + 1 < beat.timers ? beat.oldest + 1 : 0;
	}
	beat.ops += REQUESTS_A_MS;
}

static void beat_for(void (*turn)(uint32_t now_ms), uint32_t from_ms, uint32_t to_ms)
{
	uint64_t begin_ns = now_ns();

	for (uint32_t ms = from_ms; ms < to_ms; ms++) {
		uint64_t start_ns;

		sleep_until_ns(begin_ns + (ms - from_ms) * NS_PER_MS);
		start_ns = now_ns();
		beat.subject->tick();
		turn(ms);
		beat.ops_ns += now_ns() - start_ns;
	}
}

/* ---- measuring ---- */

static void beat_open(const struct run *run, const struct subject_setup *setup, uint64_t delay_ns,
                      void (*on_expiry)(uint32_t timer))
{
	(void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	beat.timers = run->timers;
	beat.randoms = randoms_from(run->seed);
	beat.next = subject_allocate(run->timers, sizeof(*beat.next));
	beat.subject = driver_open(run, setup, on_expiry);
	driver_arm_all(run->timers, delay_ns, delay_ns, run->seed);
	driver_settle();
	for (uint32_t i = 0; i < CALENDAR_MS; i++)
		beat.first[i] = NO_TIMER;
	for (uint32_t i = 0; i < run->timers; i++)
		calendar_put(i, 0);
}

static void beat_count(struct result *result, void (*turn)(uint32_t now_ms), uint32_t from_ms,
                       uint32_t to_ms)
{
	struct subject_counts before, after;
	uint64_t start_ns, cpu_ns, caller_ns;
	double seconds;

	beat.ops = beat.ops_ns = 0;
	beat.subject->counts(&before);
	cpu_ns = process_cpu_ns();
	caller_ns = thread_cpu_ns();
	start_ns = now_ns();
	beat_for(turn, from_ms, to_ms);
	seconds = (double)(now_ns() - start_ns) * 1e-9;
	caller_ns = thread_cpu_ns() - caller_ns;
	cpu_ns = process_cpu_ns() - cpu_ns;
	beat.subject->counts(&after);
	result->ns_per_op = (double)beat.ops_ns / (double)beat.ops;
	result->cpu_ns_per_op = (double)cpu_ns / (double)beat.ops;
	result_add(result, "wakeups_per_s",
	           (double)(after.owner_wakeups - before.owner_wakeups) / seconds);
	result_add(result, "owner_cpu_us", (double)(cpu_ns - caller_ns) * 1e-3 / seconds);
}

static void beat_measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers, .cross = true };

	beat_open(run, &setup, IDLE_NS, NULL);
	beat_for(beat_turn, 0, BEAT_WARM_MS);
	beat_count(result, beat_turn, BEAT_WARM_MS, BEAT_WARM_MS + BEAT_MS);
}

static void beat_cancel_measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers, .cross = true };

	beat_open(run, &setup, REQUEST_NS, NULL);
	beat_for(request_turn, 0, REQUEST_WARM_MS);
	beat_count(result, request_turn, 0, REQUEST_MS);
}

/* ---- timers that expire ---- */

static struct histogram late;
static uint64_t late_deadlines_ns[LATE_TIMERS];
static uint32_t late_count, late_early; /* written by the consumer */

static void late_record(uint32_t timer)
{
	uint64_t now = now_ns(), deadline_ns;

	if (timer < beat.timers)
		return; /* the machine has stopped the caller for seconds */
	deadline_ns = late_deadlines_ns[timer - beat.timers];
	late_early += now < deadline_ns;
	histogram_add(&late, now < deadline_ns ? 0 : now - deadline_ns);
	__atomic_store_n(&late_count, late_count + 1, __ATOMIC_RELEASE);
}

static void late_arm_all(void)
{
	uint64_t cached_ns = 0;

	for (uint32_t i = 0; i < LATE_TIMERS; i++) {
		uint64_t delay_ns =
			randoms_between(&beat.randoms, 500 * NS_PER_MS, BEAT_MS * NS_PER_MS);

		if (i % TURN_OPS == 0) {
			cached_ns = now_ns();
			beat.subject->tick();
		}
		late_deadlines_ns[i] = cached_ns + delay_ns;
		subject_must(beat.subject->arm(beat.timers + i, delay_ns));
	}
}

static void beat_late_measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers + LATE_TIMERS,
		                       .cross = true,
		                       .epoll = true };
	uint32_t end_ms = BEAT_WARM_MS + BEAT_MS;

	beat_open(run, &setup, IDLE_NS, late_record);
	beat_for(beat_turn, 0, BEAT_WARM_MS);
	late_arm_all();
	beat_count(result, beat_turn, BEAT_WARM_MS, end_ms);
	for (; __atomic_load_n(&late_count, __ATOMIC_ACQUIRE) < LATE_TIMERS; end_ms++)
		beat_for(beat_turn, end_ms, end_ms + 1);
	result_add(result, "p50_us", histogram_quantile_ns(&late, 0.5) * 1e-3);
	result_add(result, "p99_us", histogram_quantile_ns(&late, 0.99) * 1e-3);
	result_add(result, "p99.9_us", histogram_quantile_ns(&late, 0.999) * 1e-3);
	result_add(result, "early", late_early);
}

const struct workload workload_beat = {
	.name = "beat",
	.what = "re-arm connections that are heard of once a second by 3 s; nothing expires",
	.needs = CAN_REARM | CAN_EXPIRE | CAN_CROSS | CAN_COUNT_WAKES,
	.shows = "wakeups_per_s",
	.timers = { 1000, 10000, 100000 },
	.threads = { 1 },
	.rounds_max = 1,
	.measure = beat_measure,
};

const struct workload workload_beat_cancel = {
	.name = "beat-cancel",
	.what = "10^5 requests a second with a timeout of 30 s, all cancelled in time",
	.needs = CAN_CANCEL | CAN_EXPIRE | CAN_CROSS | CAN_COUNT_WAKES,
	.shows = "wakeups_per_s",
	.timers = { 10000 },
	.threads = { 1 },
	.rounds_max = 1,
	.measure = beat_cancel_measure,
};

const struct workload workload_beat_late = {
	.name = "beat-late",
	.what = "as beat, beside 10^4 timers that expire within 6 s: how late they come",
	.needs = CAN_REARM | CAN_EXPIRE | CAN_CROSS | CAN_COUNT_WAKES,
	.shows = "p99_us",
	.timers = { 100000 },
	.threads = { 1 },
	.measure = beat_late_measure,
};
