/* SPDX-License-Identifier: MIT */
/*
 * Measures calls, until the service has applied all. Timers expire in "busy" only. Each caller is a
 * thread that repeats the same work with timers of its own; in a turn, which each workload defines,
 * it caches the time and makes about 64 calls.
 *
 * In "refresh", a caller re-arms a random timer of its own to a minute from now. In "churn", it
 * cancels one, and arms it for one to two minutes.
 *
 * In "server", a caller has N connections, and a turn handles 1 to 64 messages. A message touches
 * the record of a random connection, re-arms its idle timeout, ends a request and starts one, which
 * lasts for 256 messages. One in a thousand closes its connection and opens another. The few ns to
 * choose a message are in every subject's result.
 *
 * In "busy", callers arm timers of 1 to 100 ms and cancel half of them, while the owner expires
 * timers and a consumer takes the events. A caller uses its timers in turn: nearly always one has
 * ended before its next use.
 */
#include "base/clock.h"
#include "randoms.h"
#include "records.h"
#include "workload.h"

#define TURN_OPS 64 /* calls between two readings of the clock, as in a turn of a busy event loop */
#define MEASURE_NS (300 * NS_PER_MS)
#define MINUTE_NS (60 * NS_PER_S)
#define REQUEST_NS (30 * NS_PER_S)
#define MESSAGES_MAX 64 /* most messages in a turn of a server */
#define IN_FLIGHT 256   /* number of a caller's requests in flight */
#define CLOSES_ONE_IN 1000
#define BUSY_FROM_NS NS_PER_MS
#define BUSY_TO_NS (100 * NS_PER_MS)
#define BUSY_LAG 64
/* the room beyond the callers' own; if callers outrun the owner so far, they wait */
#define BUSY_LIVE_MAX 8000000

struct caller {
	_Alignas(64) const struct subject *subject;
	uint32_t first;    /* the caller's first timer */
	uint32_t count;    /* number of the caller's timers */
	uint32_t requests; /* the timer of the caller's first request */
	uint32_t oldest;   /* the caller's oldest request, which ends next */
	struct randoms randoms;
	uint64_t ops;
};

/* The work of the callers of a workload. */
struct calls {
	unsigned (*turn)(struct caller *caller); /* makes some calls, and returns how many */
	uint64_t from_ns, to_ns; /* bounds of the first delays; 0: none is armed before the turns */
	uint32_t requests;       /* number of requests of each caller */
	uint32_t spare;          /* as in struct subject_setup */
};

static const struct calls *calls;
static bool cross; /* another thread is in run() */
static uint64_t until_ns;
static struct caller callers[TEAM_MAX];

static void caller_arm(unsigned member)
{
	struct caller *caller = &callers[member];
	const struct subject *subject = caller->subject;
	uint32_t timers = calls->from_ns > 0 ? caller->count : 0;

	for (uint32_t i = 0; i < timers + calls->requests; i++) {
		if (i % TURN_OPS == 0)
			subject->tick();
		if (i < timers)
			subject_must(subject->arm(
				caller->first + i,
				randoms_between(&caller->randoms, calls->from_ns, calls->to_ns)));
		else
			subject_must(subject->arm(caller->requests + i - timers, REQUEST_NS));
	}
}

/* Works on a copy, because two states in a cache line would slow both callers down. */
static void caller_run(unsigned member)
{
	struct caller mine = callers[member];

	mine.ops = 0;
	do {
		mine.subject->tick();
		mine.ops += calls->turn(&mine);
	} while (clock_monotonic_ns() < until_ns);
	callers[member] = mine;
}

static void caller_run_alone(void)
{
	caller_run(0);
}

static void callers_open(const struct run *run)
{
	uint32_t each = run->timers / run->threads;
	struct subject_setup setup = {
		.timers = run->timers + run->threads * calls->requests,
		.spare = calls->spare,
		.records = calls->requests > 0,
	};

	cross = run->threads > 1 || calls->spare > 0 || (run->subject->can & OWNER) != 0;
	setup.cross = cross;
	driver_open(run, &setup);
	for (unsigned i = 0; i < run->threads; i++)
		callers[i] = (struct caller){
			.subject = run->subject,
			.first = i * each,
			.count = each,
			.requests = run->timers + i * calls->requests,
			.randoms = randoms_from(run->seed + i),
		};
	if (run->threads > 1)
		(void)team_run(run->threads, caller_arm);
	else
		caller_arm(0);
	driver_settle();
}

/* Returns the time at which the callers began. A loop is called by its own thread alone. */
static uint64_t callers_run(const struct run *run, uint64_t duration_ns)
{
	uint64_t start_ns = clock_monotonic_ns();

	until_ns = start_ns + duration_ns;
	if (run->threads > 1)
		return team_run(run->threads, caller_run);
	if (run->subject->within && !cross)
		run->subject->within(caller_run_alone);
	else
		caller_run(0);
	return start_ns;
}

static void callers_measure(const struct run *run, const struct calls *wanted)
{
	uint64_t ops = 0;
	struct meter meter;

	calls = wanted;
	callers_open(run);
	(void)callers_run(run, MEASURE_NS / 4); /* warms up */
	driver_settle();
	meter = meter_start();
	meter.start_ns = callers_run(run, MEASURE_NS);
	driver_settle();
	for (unsigned i = 0; i < run->threads; i++)
		ops += callers[i].ops;
	meter_stop(&meter, ops);
}

/* ---- turns ---- */

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

/* ---- a server ---- */

static uint32_t server_next_request(struct caller *caller)
{
	uint32_t request = caller->requests + caller->oldest;

	caller->oldest = (caller->oldest + 1) % IN_FLIGHT;
	return request;
}

static void server_message(struct caller *caller)
{
	const struct subject *subject = caller->subject;
	uint32_t connection = caller->first + randoms_below(&caller->randoms, caller->count);
	uint32_t request = server_next_request(caller);

	records_touch(connection);
	subject_must(subject->rearm(connection, MINUTE_NS));
	subject->cancel(request);
	subject_must(subject->arm(request, REQUEST_NS));
	if (randoms_below(&caller->randoms, CLOSES_ONE_IN) > 0)
		return;
	subject->cancel(connection);
	subject_must(subject->arm(connection, MINUTE_NS));
}

static unsigned server_turn(struct caller *caller)
{
	unsigned count = 1 + randoms_below(&caller->randoms, MESSAGES_MAX);

	for (unsigned i = 0; i < count; i++)
		server_message(caller);
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
	void name##_measure(const struct run *run)                                                 \
	{                                                                                          \
		static const struct calls its = { .turn = name##_turn, __VA_ARGS__ };              \
                                                                                                   \
		callers_measure(run, &its);                                                        \
	}

MEASURE(refresh, .from_ns = MINUTE_NS, .to_ns = MINUTE_NS)
MEASURE(churn, .from_ns = MINUTE_NS, .to_ns = 2 * MINUTE_NS)
MEASURE(server, .from_ns = MINUTE_NS, .to_ns = MINUTE_NS, .requests = IN_FLIGHT)
MEASURE(busy, .spare = BUSY_LIVE_MAX)
