/* SPDX-License-Identifier: MIT */
/*
 * Each request has a timeout. A request arms a timer of 30 seconds and cancels it 64 requests
 * later. N other timers stay armed. Counts how often the sleeping owner was woken.
 */
#include "clocks.h"
#include "driver.h"
#include "randoms.h"
#include "records.h"
#include "team.h"
#include "workload_list.h"

#define TIMEOUT_NS (30 * NS_PER_SECOND)
#define IN_FLIGHT 64

struct request_run {
	const struct subject *subject;
	uint32_t first; /* the first timer after the N */
	uint64_t until_ns;
	struct {
		_Alignas(64) uint64_t ops;
	} members[TEAM_MAX];
};

/* A thread's requests use its timers in turn. */
static void requester_run(unsigned member, void *context)
{
	struct request_run *requests = context;
	const struct subject *subject = requests->subject;
	uint32_t first = requests->first + member * IN_FLIGHT;
	uint64_t ops = 0;

	do {
		subject->tick();
		for (uint32_t i = 0; i < IN_FLIGHT; i++) {
			subject->cancel(first + i);
			subject_must(subject->arm(first + i, TIMEOUT_NS));
		}
		ops += IN_FLIGHT;
	} while (now_ns() < requests->until_ns);
	requests->members[member].ops = ops;
}

static void requester_arm(unsigned member, void *context)
{
	struct request_run *requests = context;

	requests->subject->tick();
	for (uint32_t i = 0; i < IN_FLIGHT; i++)
		subject_must(requests->subject->arm(requests->first + member * IN_FLIGHT + i,
		                                    TIMEOUT_NS));
}

static void request_alone(void *context)
{
	requester_run(0, context);
}

/* Returns the CPU time of the callers. */
static uint64_t request_for(struct request_run *requests, unsigned threads, uint64_t duration_ns)
{
	uint64_t cpu_ns = thread_cpu_ns();

	requests->until_ns = now_ns() + duration_ns;
	if (threads > 1)
		return team_run(threads, requester_run, requests).cpu_ns;
	driver_within(request_alone, requests);
	return thread_cpu_ns() - cpu_ns;
}

/* ---- in one event loop, whose requests have records ---- */

/* Inline, so that the compiler decides on the order, and the measured loop has no branch for it. */
static inline __attribute__((always_inline)) void request_by_turns(struct request_run *requests,
                                                                   bool in_turn)
{
	const struct subject *subject = requests->subject;
	uint64_t ops = 0;

	do {
		subject->tick();
		for (uint32_t i = 0; i < IN_FLIGHT; i++) {
			records_touch(requests->first + i);
			if (!in_turn)
				subject->cancel(requests->first + i);
			subject_must(subject->arm(requests->first + i, TIMEOUT_NS));
			if (in_turn)
				subject->cancel(requests->first + i);
		}
		ops += IN_FLIGHT;
	} while (now_ns() < requests->until_ns);
	requests->members[0].ops = ops;
}

static void request_later(void *context)
{
	request_by_turns(context, false);
}

static void request_in_turn(void *context)
{
	request_by_turns(context, true);
}

static void request_loop(const struct run *run, struct result *result, void (*body)(void *))
{
	static struct request_run requests;
	struct subject_setup setup = { .timers = run->timers + IN_FLIGHT, .records = true };
	uint64_t start_ns, cpu_ns;

	requests.subject = driver_open(run, &setup, NULL);
	requests.first = run->timers;
	driver_arm_all(run->timers, 2 * TIMEOUT_NS, 4 * TIMEOUT_NS, run->seed);
	driver_settle();
	requests.until_ns = now_ns() + run->duration_ns / 4; /* warm up */
	driver_within(body, &requests);
	cpu_ns = process_cpu_ns();
	start_ns = now_ns();
	requests.until_ns = start_ns + run->duration_ns;
	driver_within(body, &requests);
	result->ns_per_op = (double)(now_ns() - start_ns) / (double)requests.members[0].ops;
	result->cpu_ns_per_op =
		(double)(process_cpu_ns() - cpu_ns) / (double)requests.members[0].ops;
}

static void request_loop_later(const struct run *run, struct result *result)
{
	request_loop(run, result, request_later);
}

static void request_loop_in_turn(const struct run *run, struct result *result)
{
	request_loop(run, result, request_in_turn);
}

const struct workload workload_loop_request = {
	.name = "loop-request",
	.what = "in one loop: touch a request's record, start its timeout, end it in the same turn",
	.needs = CAN_CANCEL | CAN_HOLD_RECORDS,
	.timers = { 10000 },
	.threads = { 1 },
	.measure = request_loop_in_turn,
};

const struct workload workload_loop_request_later = {
	.name = "loop-request-later",
	.what = "in one loop: as loop-request, but end it in the next turn",
	.needs = CAN_CANCEL | CAN_HOLD_RECORDS,
	.timers = { 10000 },
	.threads = { 1 },
	.measure = request_loop_later,
};

/* ---- from any thread ---- */

static void request_measure(const struct run *run, struct result *result)
{
	static struct request_run requests;
	struct subject_setup setup = { .timers = run->timers + run->threads * IN_FLIGHT,
		                       .cross = run->threads > 1 };
	struct subject_counts before = { 0 }, after = { 0 };
	uint64_t start_ns, cpu_ns, callers_ns, ops = 0;

	requests.subject = driver_open(run, &setup, NULL);
	requests.first = run->timers;
	driver_arm_all(run->timers, 2 * TIMEOUT_NS, 4 * TIMEOUT_NS, run->seed);
	(void)team_run(run->threads, requester_arm, &requests);
	driver_settle();
	(void)request_for(&requests, run->threads, run->duration_ns / 4); /* warm up */
	driver_settle();
	if (requests.subject->counts)
		requests.subject->counts(&before);
	cpu_ns = process_cpu_ns();
	start_ns = now_ns();
	callers_ns = request_for(&requests, run->threads, run->duration_ns);
	if (requests.subject->counts)
		requests.subject->counts(&after);
	if (run->threads > 1 && (requests.subject->can & CAN_ANY_THREAD) == 0)
		driver_settle(); /* the loop applies the calls only when it runs */
	for (unsigned i = 0; i < run->threads; i++)
		ops += requests.members[i].ops;
	result->ns_per_op = (double)(now_ns() - start_ns) / (double)ops;
	driver_settle();
	result->cpu_ns_per_op = (double)(process_cpu_ns() - cpu_ns) / (double)ops;
	result_add(result, "caller_ns", (double)callers_ns / (double)ops);
	result_add(result, "wakes_per_million",
	           (double)(after.submit_wakes - before.submit_wakes) * 1e6 / (double)ops);
}

const struct workload workload_request = {
	.name = "request",
	.what = "arm a timeout, and cancel it 64 arms later",
	.needs = CAN_CANCEL | CAN_CROSS,
	.shows = "caller_ns",
	.timers = { 10000 },
	.threads = { 1, 2 },
	.measure = request_measure,
};
