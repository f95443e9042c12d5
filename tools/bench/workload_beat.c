/* SPDX-License-Identifier: MIT */
/*
 * Measures the owner's work while timers move and none expires: timerhub's owner corrects schedule
 * entries before it sleeps.
 *
 * In "beat", N connections receive data at random intervals of 0.5 to 1.5 s, and each message
 * re-arms an idle timeout of 3 s. In "beat-cancel", 10^5 requests a second have a timeout of 30 s,
 * and one ends when N more have begun. "beat-late" is "beat" with 10^4 additional timers that
 * expire, whose lateness is recorded. "loop-beat" is "beat" in the thread of an event loop;
 * "wakes_per_length" is how often the loop's timers wake it in 3 s.
 *
 * The caller is a loop that turns once a millisecond. An operation is a re-arm, or an arm and a
 * cancel, without the caller's sleep. "owner_cpu_us" is the CPU time per second of all threads
 * except the caller. The warm-up is longer than the timeout, so each timer's first deadline has
 * passed.
 */
#include <sys/prctl.h>

#include "clocks.h"
#include "lateness_timers.h"
#include "randoms.h"
#include "workload_functions.h"
#include "workload_steps.h"

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

#define CALENDAR_MS 2048 /* length of the calendar, a power of two above the longest interval */
#define NO_TIMER UINT32_MAX

static struct beat {
	const struct subject *subject;
	struct randoms randoms;
	uint32_t timers;
	uint32_t *next;              /* for each timer: next timer in the list of its millisecond */
	uint32_t first[CALENDAR_MS]; /* for each millisecond: first timer to re-arm */
	uint32_t oldest;             /* the oldest request, which is the next to end */
	uint64_t ops;
	uint64_t ops_ns; /* time in the calls of the measured service */
	bool own_loop;   /* the caller's thread runs the loop */
	uint64_t wakes;  /* number of times that a timer of the loop ended a sleep */
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

static void beat_sleep(uint64_t until_ns)
{
	if (!beat.own_loop)
		sleep_until_ns(until_ns);
	else
		while (beat.subject->wait(until_ns))
			beat.wakes++;
}

static void beat_for(void (*turn)(uint32_t now_ms), uint32_t from_ms, uint32_t to_ms)
{
	uint64_t begin_ns = now_ns();

	for (uint32_t ms = from_ms; ms < to_ms; ms++) {
		uint64_t start_ns;

		beat_sleep(begin_ns + (ms - from_ms) * NS_PER_MS);
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

/*
 * Run one turn for each millisecond in [from_ms, to_ms), and measure the operations. Returns the
 * duration in seconds.
 */
static double beat_count(struct result *result, void (*turn)(uint32_t now_ms), uint32_t from_ms,
                         uint32_t to_ms)
{
	uint64_t wakeups = driver_counts().owner_wakeups, caller_ns = thread_cpu_ns();
	struct meter meter = meter_start();
	double seconds, cpu_ns;

	beat.ops = beat.ops_ns = beat.wakes = 0;
	beat_for(turn, from_ms, to_ms);
	seconds = (double)(now_ns() - meter.start_ns) * 1e-9;
	caller_ns = thread_cpu_ns() - caller_ns;
	meter_stop(&meter, result, beat.ops);
	cpu_ns = result->cpu_ns_per_op * (double)beat.ops;
	result->ns_per_op = (double)beat.ops_ns / (double)beat.ops;
	if (beat.own_loop)
		return seconds;
	wakeups = driver_counts().owner_wakeups - wakeups;
	result_add(result, "wakeups_per_s", (double)wakeups / seconds);
	result_add(result, "owner_cpu_us", (cpu_ns - (double)caller_ns) * 1e-3 / seconds);
	return seconds;
}

void beat_measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers, .cross = true };

	beat_open(run, &setup, IDLE_NS, NULL);
	beat_for(beat_turn, 0, BEAT_WARM_MS);
	(void)beat_count(result, beat_turn, BEAT_WARM_MS, BEAT_WARM_MS + BEAT_MS);
}

void loop_beat_measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers };
	double seconds;

	beat_open(run, &setup, IDLE_NS, NULL);
	beat.own_loop = true;
	beat_for(beat_turn, 0, BEAT_WARM_MS);
	seconds = beat_count(result, beat_turn, BEAT_WARM_MS, BEAT_WARM_MS + BEAT_MS);
	result_add(result, "wakes_per_length", (double)beat.wakes * IDLE_NS * 1e-9 / seconds);
}

void beat_cancel_measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers, .cross = true };

	beat_open(run, &setup, REQUEST_NS, NULL);
	beat_for(request_turn, 0, REQUEST_WARM_MS);
	(void)beat_count(result, request_turn, 0, REQUEST_MS);
}

void beat_late_measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers + LATE_TIMERS,
		                       .cross = true,
		                       .epoll = true };
	uint32_t end_ms = BEAT_WARM_MS + BEAT_MS;

	beat_open(run, &setup, IDLE_NS, late_record);
	beat_for(beat_turn, 0, BEAT_WARM_MS);
	late_arm(beat.subject, run->timers, LATE_TIMERS, 500 * NS_PER_MS, BEAT_MS * NS_PER_MS,
	         run->seed);
	(void)beat_count(result, beat_turn, BEAT_WARM_MS, end_ms);
	for (; late_count() < LATE_TIMERS; end_ms++)
		beat_for(beat_turn, end_ms, end_ms + 1);
	late_add(result, (const double[]){ 50, 99, 99.9, 0 });
}
