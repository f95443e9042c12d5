/* SPDX-License-Identifier: MIT */
/*
 * Measures calls. Timers expire in "busy" only. Each workload defines a turn of its callers.
 *
 * In "refresh", a caller re-arms a random timer of its own to a minute from now. In "churn", it
 * cancels one, and arms it for one to two minutes. In "request", it arms a timer of 30 s and
 * cancels it 64 requests later, while N others stay armed.
 *
 * In "server", a caller has N connections, and a turn handles 1 to 64 messages. A message touches
 * the record of a random connection, re-arms its idle timeout, ends a request and starts one, which
 * lasts for 256 messages. One in a thousand closes its connection and opens another. The few ns to
 * choose a message are in every subject's result.
 *
 * In "busy", callers arm timers of 1 to 100 ms and cancel half of them, while the owner expires
 * timers and a consumer takes the events. "apply_ms" is the time from the last call until all are
 * applied. A caller uses its timers in turn: nearly always one has ended before its next use.
 */
#include "callers.h"
#include "clocks.h"
#include "driver.h"
#include "records.h"

#define MINUTE_NS (60 * NS_PER_SECOND)
#define REQUEST_NS (30 * NS_PER_SECOND)
#define IN_FLIGHT 64
#define SERVER_IN_FLIGHT 256 /* number of a caller's requests in flight; at least BATCH_MAX */
#define CLOSES_ONE_IN 1000
#define BUSY_FROM_NS NS_PER_MS
#define BUSY_TO_NS (100 * NS_PER_MS)
#define BUSY_LAG 64
/* the room beyond the callers' own; if callers outrun the owner so far, they wait */
#define BUSY_LIVE_MAX 8000000

static unsigned refresh_turn(struct caller *caller)
{
	struct randoms randoms = caller->randoms;

	for (unsigned i = 0; i < TURN_OPS; i++)
		subject_must(caller->subject->rearm(
			caller->first + randoms_below(&randoms, caller->count), MINUTE_NS));
	caller->randoms = randoms;
	return TURN_OPS;
}

static unsigned churn_turn(struct caller *caller)
{
	struct randoms randoms = caller->randoms;

	for (unsigned i = 0; i < TURN_OPS; i++) {
		uint32_t timer = caller->first + randoms_below(&randoms, caller->count);

		caller->subject->cancel(timer);
		subject_must(caller->subject->arm(
			timer, randoms_between(&randoms, MINUTE_NS, 2 * MINUTE_NS)));
	}
	caller->randoms = randoms;
	return TURN_OPS;
}

static unsigned request_turn(struct caller *caller)
{
	for (uint32_t i = 0; i < IN_FLIGHT; i++) {
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

	for (unsigned i = 0; i < count; i++) {
		connections[i] = server_message(caller);
		requests[i] = server_next_request(caller);
	}
	subject_must(subject->rearm_many(connections, count, MINUTE_NS));
	subject->cancel_many(requests, count);
	subject_must(subject->arm_many(requests, REQUEST_NS, count));
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

static unsigned busy_turn(struct caller *caller)
{
	struct randoms randoms = caller->randoms;
	uint32_t first = caller->first, count = caller->count, i = caller->oldest;

	for (unsigned turn = 0; turn < TURN_OPS; turn++) {
		driver_arm(first + i, randoms_between(&randoms, BUSY_FROM_NS, BUSY_TO_NS));
		if (i % 2 == 0)
			caller->subject->cancel(first + (i + count - BUSY_LAG) % count);
		i = i + 1 < count ? i + 1 : 0;
	}
	caller->randoms = randoms;
	caller->oldest = i;
	return TURN_OPS * 3 / 2;
}

/* ---- the workloads ---- */

#define MEASURE(name, ...)                                                                         \
	void name##_measure(const struct run *run, struct result *result)                          \
	{                                                                                          \
		static const struct calls calls = { .turn = name##_turn, __VA_ARGS__ };            \
                                                                                                   \
		(void)callers_measure(run, result, &calls);                                        \
	}

MEASURE(refresh, .from_ns = MINUTE_NS, .to_ns = MINUTE_NS)
MEASURE(churn, .from_ns = MINUTE_NS, .to_ns = 2 * MINUTE_NS)
MEASURE(request, .from_ns = MINUTE_NS, .to_ns = 2 * MINUTE_NS, .requests = IN_FLIGHT,
        .request_ns = REQUEST_NS)
MEASURE(server, .from_ns = MINUTE_NS, .to_ns = MINUTE_NS, .requests = SERVER_IN_FLIGHT,
        .request_ns = REQUEST_NS, .setup.records = true)

void busy_measure(const struct run *run, struct result *result)
{
	static const struct calls calls = { .turn = busy_turn,
		                            .until_applied = true,
		                            .setup = { .spare = BUSY_LIVE_MAX, .cross = true } };
	uint64_t settle_ns = callers_measure(run, result, &calls);

	result_add(result, "apply_ms", (double)settle_ns * 1e-6);
}
