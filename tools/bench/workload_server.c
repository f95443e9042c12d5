/* SPDX-License-Identifier: MIT */
/*
 * A server's mix: N connections, distributed over one or several event loops. A turn of a loop
 * handles 1 to 64 messages. A message touches the record of a random connection of its loop,
 * re-arms the idle timeout of that connection, ends a request and starts one (a request lasts for
 * 256 messages). One message in a thousand closes its connection and opens another. No timer
 * expires. An operation is a message. Choosing the message takes a few ns with every subject.
 *
 * All loops share one service that any thread may call. If a service belongs to one thread, each
 * loop has its own service. Here each such loop is a separate process, since a subject has its
 * state in static variables. Such loops share nothing.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clocks.h"
#include "driver.h"
#include "randoms.h"
#include "records.h"
#include "team.h"
#include "workload_list.h"

#define IDLE_NS (60 * NS_PER_SECOND)
#define REQUEST_NS (30 * NS_PER_SECOND)
#define IN_FLIGHT 256 /* requests of a loop; at least BATCH_MAX */
#define CLOSES_ONE_IN 1000

/* One event loop. */
struct server_loop {
	_Alignas(64) uint32_t first; /* the loop's first connection */
	uint32_t count;              /* number of the loop's connections */
	uint32_t requests;           /* the first timer of the loop's requests */
	uint32_t oldest;             /* the request that ends next */
	struct randoms randoms;
	uint64_t messages;
};

static struct server {
	const struct subject *subject;
	uint64_t until_ns;
	struct server_loop loops[TEAM_MAX];
} server;

struct server_times {
	uint64_t messages, wall_ns, cpu_ns, callers_ns;
};

/* ---- a turn ---- */

static uint32_t loop_next_request(struct server_loop *loop)
{
	uint32_t request = loop->requests + loop->oldest;

	loop->oldest = (loop->oldest + 1) % IN_FLIGHT;
	return request;
}

static void loop_maybe_reopen(struct server_loop *loop, uint32_t connection)
{
	if (randoms_below(&loop->randoms, CLOSES_ONE_IN) > 0)
		return;
	server.subject->cancel(connection);
	subject_must(server.subject->arm(connection, IDLE_NS));
}

static void turn_one_by_one(struct server_loop *loop, unsigned count)
{
	const struct subject *subject = server.subject;

	for (unsigned i = 0; i < count; i++) {
		uint32_t connection = loop->first + randoms_below(&loop->randoms, loop->count);
		uint32_t request = loop_next_request(loop);

		records_touch(connection);
		subject_must(subject->rearm(connection, IDLE_NS));
		subject->cancel(request);
		subject_must(subject->arm(request, REQUEST_NS));
		loop_maybe_reopen(loop, connection);
	}
}

static void turn_batched(struct server_loop *loop, unsigned count)
{
	uint32_t connections[BATCH_MAX], requests[BATCH_MAX];
	const struct subject *subject = server.subject;
	uint64_t delays_ns[BATCH_MAX];

	for (unsigned i = 0; i < count; i++) {
		connections[i] = loop->first + randoms_below(&loop->randoms, loop->count);
		records_touch(connections[i]);
		requests[i] = loop_next_request(loop);
		delays_ns[i] = REQUEST_NS;
	}
	subject_must(subject->rearm_many(connections, count, IDLE_NS));
	subject->cancel_many(requests, count);
	subject_must(subject->arm_many(requests, delays_ns, count));
	for (unsigned i = 0; i < count; i++)
		loop_maybe_reopen(loop, connections[i]);
}

static void loop_run(unsigned member, void *context)
{
	const struct subject *subject = server.subject;
	struct server_loop loop = server.loops[member];

	(void)context;
	loop.messages = 0;
	do {
		unsigned count = 1 + randoms_below(&loop.randoms, BATCH_MAX);

		subject->tick();
		if (subject->rearm_many)
			turn_batched(&loop, count);
		else
			turn_one_by_one(&loop, count);
		loop.messages += count;
	} while (now_ns() < server.until_ns);
	server.loops[member] = loop;
}

static void loop_arm(unsigned member, void *context)
{
	const struct server_loop *loop = &server.loops[member];

	(void)context;
	server.subject->tick();
	for (uint32_t i = 0; i < loop->count; i++)
		subject_must(server.subject->arm(loop->first + i, IDLE_NS));
	for (uint32_t i = 0; i < IN_FLIGHT; i++)
		subject_must(server.subject->arm(loop->requests + i, REQUEST_NS));
}

static void loop_run_alone(void *context)
{
	loop_run(0, context);
}

/* ---- measuring ---- */

/* Returns the CPU time of the callers. */
static uint64_t server_for(unsigned threads, uint64_t duration_ns)
{
	uint64_t cpu_ns = thread_cpu_ns();

	server.until_ns = now_ns() + duration_ns;
	if (threads > 1)
		return team_run(threads, loop_run, NULL).cpu_ns;
	driver_within(loop_run_alone, NULL);
	return thread_cpu_ns() - cpu_ns;
}

static void server_open(const struct run *run)
{
	struct subject_setup setup = { .timers = run->timers + run->threads * IN_FLIGHT,
		                       .cross = run->threads > 1,
		                       .records = true };
	uint32_t each = run->timers / run->threads;

	server.subject = driver_open(run, &setup, NULL);
	for (unsigned i = 0; i < run->threads; i++)
		server.loops[i] = (struct server_loop){
			.first = i * each,
			.count = each,
			.requests = run->timers + i * IN_FLIGHT,
			.randoms = randoms_from(run->seed + i),
		};
	if (run->threads > 1)
		(void)team_run(run->threads, loop_arm, NULL);
	else
		loop_arm(0, NULL);
	driver_settle();
}

static struct server_times server_together(const struct run *run)
{
	struct server_times times = { 0 };
	uint64_t start_ns, cpu_ns;

	(void)server_for(run->threads, run->duration_ns / 4); /* warm up */
	driver_settle();
	cpu_ns = process_cpu_ns();
	start_ns = now_ns();
	times.callers_ns = server_for(run->threads, run->duration_ns);
	times.wall_ns = now_ns() - start_ns;
	driver_settle();
	times.cpu_ns = process_cpu_ns() - cpu_ns;
	for (unsigned i = 0; i < run->threads; i++)
		times.messages += server.loops[i].messages;
	return times;
}

/* ---- a loop for each thread ---- */

struct server_shared {
	pthread_barrier_t opened;
	struct server_times times[TEAM_MAX];
};

static struct server_shared *server_share(void)
{
	struct server_shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
	                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		subject_fail("mmap", errno);
	return shared;
}

_Noreturn static void server_child(const struct run *run, struct server_shared *shared,
                                   unsigned member)
{
	struct run mine = *run;

	mine.timers = run->timers / run->threads;
	mine.threads = 1;
	mine.seed = run->seed + member;
	team_pin(member);
	server_open(&mine);
	(void)pthread_barrier_wait(&shared->opened);
	shared->times[member] = server_together(&mine);
	_exit(0);
}

static struct server_times server_apart(const struct run *run)
{
	struct server_shared *shared = server_share();
	struct server_times times = { 0 };
	pthread_barrierattr_t attributes;
	int status;

	(void)pthread_barrierattr_init(&attributes);
	(void)pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	(void)pthread_barrier_init(&shared->opened, &attributes, run->threads);
	for (unsigned i = 0; i < run->threads; i++) {
		pid_t child = fork();

		if (child < 0)
			subject_fail("fork", errno);
		if (child == 0)
			server_child(run, shared, i);
	}
	for (unsigned i = 0; i < run->threads; i++)
		if (wait(&status) < 0 || status != 0)
			subject_fail("a loop's process", 0);
	for (unsigned i = 0; i < run->threads; i++) {
		times.messages += shared->times[i].messages;
		times.cpu_ns += shared->times[i].cpu_ns;
		times.callers_ns += shared->times[i].callers_ns;
		if (shared->times[i].wall_ns > times.wall_ns)
			times.wall_ns = shared->times[i].wall_ns;
	}
	return times;
}

static void server_measure(const struct run *run, struct result *result)
{
	struct server_times times;

	if (run->threads > 1 && (run->subject->can & LOOP_EACH) != 0) {
		times = server_apart(run);
	} else {
		server_open(run);
		times = server_together(run);
	}
	result->ns_per_op = (double)times.wall_ns / (double)times.messages;
	result->cpu_ns_per_op = (double)times.cpu_ns / (double)times.messages;
	result_add(result, "caller_ns", (double)times.callers_ns / (double)times.messages);
}

const struct workload workload_server = {
	.name = "server",
	.what = "a message: a record, its connection's idle timeout, a request ended, one started",
	.needs = CAN_REARM | CAN_CANCEL | CAN_SERVE,
	.shows = "caller_ns",
	.timers = { 1000, 100000 },
	.threads = { 1, 2 },
	.measure = server_measure,
};
