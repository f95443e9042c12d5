/* SPDX-License-Identifier: MIT */
/*
 * Measures calls. Timers do not expire, except in "cross-busy". Each workload defines one turn of
 * its callers (callers.h).
 *
 * In "refresh", a caller re-arms a random timer of its own to a minute from now. In "neighbours",
 * one thread has armed all timers, and neighbours belong to different callers. In "loop-refresh",
 * the timers are in the records of connections, and each re-arm touches the record; in
 * "one-message", each is a turn of its own, which reads the clock.
 *
 * In "churn", a caller cancels a random timer, and arms one for one to two minutes. "batch-rearm"
 * and "batch-churn" do so with 32 timers at once, none of them twice, or one by one where a service
 * has no batches.
 *
 * In "request", a caller arms a timer of 30 s and cancels it 64 requests later, while N others stay
 * armed; "loop-request" cancels it at once, "loop-request-later" one turn later.
 *
 * In "server", a caller has N connections, and a turn handles 1 to 64 messages. A message touches
 * the record of a random connection, re-arms its idle timeout, ends a request and starts one, which
 * lasts for 256 messages. One in a thousand closes its connection and opens another. The few ns to
 * choose a message are in every subject's result.
 *
 * In "cross-busy", callers arm timers of 1 to 100 ms and cancel half of them, while the owner
 * expires timers and a consumer takes the events. "tail" measures each call of arm() in the same
 * calls. "apply_ms" is the time from the last call until all are applied. A caller uses its timers
 * in turn: nearly always one has ended before its next use.
 */
#include "callers.h"
#include "clocks.h"
#include "embedding_objects.h"
#include "workload_functions.h"
#include "workload_steps.h"

#define MINUTE_NS (60 * NS_PER_SECOND)
#define REQUEST_NS (30 * NS_PER_SECOND)
#define BATCH 32
#define BATCHES 32 /* number of batches between two readings of the clock by the caller */
#define IN_FLIGHT 64
#define SERVER_IN_FLIGHT 256 /* number of a caller's requests in flight; at least BATCH_MAX */
#define CLOSES_ONE_IN 1000
#define BUSY_FROM_NS NS_PER_MS
#define BUSY_TO_NS (100 * NS_PER_MS)
#define BUSY_LAG 64
/* the room beyond the callers' own; if callers outrun the owner so far, they wait */
#define BUSY_LIVE_MAX 8000000

/* ---- re-arm ---- */

static unsigned refresh_turn(struct caller *caller)
{
	struct randoms randoms = caller->randoms;

	for (unsigned i = 0; i < TURN_OPS; i++)
		subject_must(caller->subject->rearm(
			caller->first + caller->stride * randoms_below(&randoms, caller->count),
			MINUTE_NS));
	caller->randoms = randoms;
	return TURN_OPS;
}

static unsigned loop_refresh_turn(struct caller *caller)
{
	struct randoms randoms = caller->randoms;

	for (unsigned i = 0; i < TURN_OPS; i++) {
		uint32_t timer = randoms_below(&randoms, caller->count);

		records_touch(timer);
		subject_must(caller->subject->rearm(timer, MINUTE_NS));
	}
	caller->randoms = randoms;
	return TURN_OPS;
}

static unsigned one_message_turn(struct caller *caller)
{
	for (unsigned i = 0; i < TURN_OPS; i++) {
		uint32_t timer = randoms_below(&caller->randoms, caller->count);

		caller->subject->tick();
		records_touch(timer);
		subject_must(caller->subject->rearm(timer, MINUTE_NS));
	}
	return TURN_OPS;
}

static uint32_t batch_pick(const struct caller *caller, struct randoms *randoms, uint32_t i)
{
	uint32_t part = caller->count / BATCH;

	return i * part + randoms_below(randoms, part);
}

static unsigned batch_rearm_turn(struct caller *caller)
{
	const struct subject *subject = caller->subject;
	struct randoms randoms = caller->randoms;
	uint32_t timers[BATCH];

	for (unsigned batch = 0; batch < BATCHES; batch++) {
		subject->tick();
		for (uint32_t i = 0; i < BATCH && !subject->rearm_many; i++)
			subject_must(subject->rearm(batch_pick(caller, &randoms, i), MINUTE_NS));
		if (!subject->rearm_many)
			continue;
		for (uint32_t i = 0; i < BATCH; i++)
			timers[i] = batch_pick(caller, &randoms, i);
		subject_must(subject->rearm_many(timers, BATCH, MINUTE_NS));
	}
	caller->randoms = randoms;
	return BATCHES * BATCH;
}

/* ---- cancel and arm ---- */

static uint64_t churn_delay_ns(struct randoms *randoms)
{
	return randoms_between(randoms, MINUTE_NS, 2 * MINUTE_NS);
}

static void churn(const struct subject *subject, uint32_t timer, struct randoms *randoms)
{
	subject->cancel(timer);
	subject_must(subject->arm(timer, churn_delay_ns(randoms)));
}

static unsigned churn_turn(struct caller *caller)
{
	struct randoms randoms = caller->randoms;

	for (unsigned i = 0; i < TURN_OPS; i++)
		churn(caller->subject, randoms_below(&randoms, caller->count), &randoms);
	caller->randoms = randoms;
	return TURN_OPS;
}

static unsigned batch_churn_turn(struct caller *caller)
{
	const struct subject *subject = caller->subject;
	struct randoms randoms = caller->randoms;
	uint64_t delays_ns[BATCH];
	uint32_t timers[BATCH];

	for (unsigned batch = 0; batch < BATCHES; batch++) {
		subject->tick();
		for (uint32_t i = 0; i < BATCH; i++) {
			timers[i] = batch_pick(caller, &randoms, i);
			if (subject->arm_many)
				delays_ns[i] = churn_delay_ns(&randoms);
			else
				churn(subject, timers[i], &randoms);
		}
		if (subject->arm_many) {
			subject->cancel_many(timers, BATCH);
			subject_must(subject->arm_many(timers, delays_ns, BATCH));
		}
	}
	caller->randoms = randoms;
	return BATCHES * BATCH;
}

/* ---- requests ---- */

static unsigned request_turn(struct caller *caller)
{
	for (uint32_t i = 0; i < IN_FLIGHT; i++) {
		caller->subject->cancel(caller->requests + i);
		subject_must(caller->subject->arm(caller->requests + i, REQUEST_NS));
	}
	return IN_FLIGHT;
}

static unsigned loop_request_turn(struct caller *caller)
{
	for (uint32_t i = 0; i < IN_FLIGHT; i++) {
		records_touch(caller->requests + i);
		subject_must(caller->subject->arm(caller->requests + i, REQUEST_NS));
		caller->subject->cancel(caller->requests + i);
	}
	return IN_FLIGHT;
}

static unsigned loop_request_later_turn(struct caller *caller)
{
	for (uint32_t i = 0; i < IN_FLIGHT; i++) {
		records_touch(caller->requests + i);
		caller->subject->cancel(caller->requests + i);
		subject_must(caller->subject->arm(caller->requests + i, REQUEST_NS));
	}
	return IN_FLIGHT;
}

/* ---- a server ---- */

static uint32_t server_next_request(struct caller *caller)
{
	uint32_t request = caller->requests + caller->oldest;

	caller->oldest = (caller->oldest + 1) % SERVER_IN_FLIGHT;
	return request;
}

static void server_maybe_reopen(struct caller *caller, uint32_t connection)
{
	if (randoms_below(&caller->randoms, CLOSES_ONE_IN) > 0)
		return;
	caller->subject->cancel(connection);
	subject_must(caller->subject->arm(connection, MINUTE_NS));
}

static uint32_t server_message(struct caller *caller)
{
	uint32_t connection = caller->first + randoms_below(&caller->randoms, caller->count);

	records_touch(connection);
	return connection;
}

static void server_one_by_one(struct caller *caller, unsigned count)
{
	const struct subject *subject = caller->subject;

	for (unsigned i = 0; i < count; i++) {
		uint32_t connection = server_message(caller);
		uint32_t request = server_next_request(caller);

		subject_must(subject->rearm(connection, MINUTE_NS));
		subject->cancel(request);
		subject_must(subject->arm(request, REQUEST_NS));
		server_maybe_reopen(caller, connection);
	}
}

static void server_batched(struct caller *caller, unsigned count)
{
	uint32_t connections[BATCH_MAX], requests[BATCH_MAX];
	const struct subject *subject = caller->subject;
	uint64_t delays_ns[BATCH_MAX];

	for (unsigned i = 0; i < count; i++) {
		connections[i] = server_message(caller);
		requests[i] = server_next_request(caller);
		delays_ns[i] = REQUEST_NS;
	}
	subject_must(subject->rearm_many(connections, count, MINUTE_NS));
	subject->cancel_many(requests, count);
	subject_must(subject->arm_many(requests, delays_ns, count));
	for (unsigned i = 0; i < count; i++)
		server_maybe_reopen(caller, connections[i]);
}

static unsigned server_turn(struct caller *caller)
{
	unsigned count = 1 + randoms_below(&caller->randoms, BATCH_MAX);

	if (caller->subject->rearm_many)
		server_batched(caller, count);
	else
		server_one_by_one(caller, count);
	return count;
}

/* ---- while timers expire ---- */

static void busy_arm(struct caller *caller, uint32_t timer, uint64_t delay_ns)
{
	uint64_t start_ns = caller->arms ? now_ns() : 0;

	caller->refused += driver_arm(caller->subject, timer, delay_ns);
	if (caller->arms)
		histogram_add(caller->arms, now_ns() - start_ns);
}

static unsigned busy_turn(struct caller *caller)
{
	struct randoms randoms = caller->randoms;
	uint32_t first = caller->first, count = caller->count, i = caller->oldest;

	for (unsigned turn = 0; turn < TURN_OPS; turn++) {
		busy_arm(caller, first + i, randoms_between(&randoms, BUSY_FROM_NS, BUSY_TO_NS));
		if (i % 2 == 0)
			caller->subject->cancel(first + (i + count - BUSY_LAG) % count);
		i = i + 1 < count ? i + 1 : 0;
	}
	caller->randoms = randoms;
	caller->oldest = i;
	return TURN_OPS * 3 / 2;
}

/* ---- the workloads ---- */

#define MEASURE(name, function, ...)                                                               \
	void name##_measure(const struct run *run, struct result *result)                          \
	{                                                                                          \
		static const struct calls calls = { .turn = function, __VA_ARGS__ };               \
                                                                                                   \
		(void)callers_measure(run, result, &calls);                                        \
	}

MEASURE(refresh, refresh_turn, .from_ns = MINUTE_NS, .to_ns = MINUTE_NS)
MEASURE(neighbours, refresh_turn, .from_ns = MINUTE_NS, .to_ns = MINUTE_NS, .dealt = true)
MEASURE(loop_refresh, loop_refresh_turn, .from_ns = MINUTE_NS, .to_ns = MINUTE_NS,
        .setup.records = true)
MEASURE(one_message, one_message_turn, .from_ns = MINUTE_NS, .to_ns = MINUTE_NS,
        .setup.records = true)
MEASURE(churn, churn_turn, .from_ns = MINUTE_NS, .to_ns = 2 * MINUTE_NS, .caller_ns = true)
MEASURE(batch_rearm, batch_rearm_turn, .from_ns = MINUTE_NS, .to_ns = MINUTE_NS, .caller_ns = true)
MEASURE(batch_churn, batch_churn_turn, .from_ns = MINUTE_NS, .to_ns = 2 * MINUTE_NS,
        .caller_ns = true)
MEASURE(loop_request, loop_request_turn, .from_ns = MINUTE_NS, .to_ns = 2 * MINUTE_NS,
        .requests = IN_FLIGHT, .setup.records = true)
MEASURE(loop_request_later, loop_request_later_turn, .from_ns = MINUTE_NS, .to_ns = 2 * MINUTE_NS,
        .requests = IN_FLIGHT, .setup.records = true)
MEASURE(server, server_turn, .from_ns = MINUTE_NS, .to_ns = MINUTE_NS, .requests = SERVER_IN_FLIGHT,
        .request_ns = REQUEST_NS, .setup.records = true, .apart = true, .caller_ns = true)

void request_measure(const struct run *run, struct result *result)
{
	static const struct calls calls = { .turn = request_turn,
		                            .from_ns = MINUTE_NS,
		                            .to_ns = 2 * MINUTE_NS,
		                            .requests = IN_FLIGHT,
		                            .request_ns = REQUEST_NS,
		                            .caller_ns = true };
	struct calls_times times = callers_measure(run, result, &calls);

	result_add(result, "wakes_per_million",
	           (double)(times.after.submit_wakes - times.before.submit_wakes) * 1e6 /
	                   (double)times.ops);
}

static void busy_run(const struct run *run, struct result *result, struct histogram *arms)
{
	const struct calls calls = { .turn = busy_turn,
		                     .warm_divisor = 2,
		                     .until_applied = true,
		                     .setup = { .spare = BUSY_LIVE_MAX, .cross = true },
		                     .arms = arms,
		                     .caller_ns = true };
	struct calls_times times = callers_measure(run, result, &calls);

	result_add(result, "mops", 1e3 / result->ns_per_op);
	result_add(result, "inbox_max", (double)driver_counts().inbox_max);
	result_add(result, "apply_ms", (double)times.settle_ns * 1e-6);
	result_add(result, "delivered_share", (double)times.delivered / (double)times.ops);
	result_add(result, "refused_share", (double)times.refused / (double)times.ops);
}

void busy_measure(const struct run *run, struct result *result)
{
	busy_run(run, result, NULL);
}

void tail_measure(const struct run *run, struct result *result)
{
	static struct histogram arms[TEAM_MAX];

	busy_run(run, result, arms);
	for (unsigned i = 1; i < run->threads; i++)
		histogram_merge(&arms[0], &arms[i]);
	result_add_percentiles(result, &arms[0], "ns", (const double[]){ 50, 99, 99.9, 0 });
	result_add(result, "max_us", (double)arms[0].max_ns * 1e-3);
}
