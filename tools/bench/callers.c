/* SPDX-License-Identifier: MIT */
/*
 * Runs the callers of a workload. See callers.h. Each caller copies its state to its own stack. Two
 * states that share a cache line would slow both callers down.
 */
#include "callers.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clocks.h"
#include "workload_steps.h"

static const struct calls *calls;
static uint64_t until_ns;
static struct caller callers[TEAM_MAX];

static void caller_arm(unsigned member, void *context)
{
	struct caller *caller = &callers[member];
	uint32_t timers = calls->from_ns > 0 && !calls->dealt ? caller->count : 0;
	uint32_t requests = calls->request_ns > 0 ? calls->requests : 0;

	(void)context;
	for (uint32_t i = 0; i < timers + requests; i++) {
		if (i % TURN_OPS == 0)
			caller->subject->tick();
		subject_must(i < timers ? caller->subject->arm(caller->first + i * caller->stride,
		                                               randoms_between(&caller->randoms,
		                                                               calls->from_ns,
		                                                               calls->to_ns))
		                        : caller->subject->arm(caller->requests + i - timers,
		                                               calls->request_ns));
	}
}

static void caller_run(unsigned member, void *context)
{
	struct caller mine = callers[member];

	(void)context;
	mine.ops = mine.refused = 0;
	do {
		mine.subject->tick();
		mine.ops += calls->turn(&mine);
	} while (now_ns() < until_ns);
	callers[member] = mine;
}

static void caller_run_alone(void *context)
{
	caller_run(0, context);
}

static void callers_open(const struct run *run)
{
	struct subject_setup setup = calls->setup;
	uint32_t each = run->timers / run->threads;
	const struct subject *subject;

	setup.timers = run->timers + run->threads * calls->requests;
	setup.cross = setup.cross || run->threads > 1;
	subject = driver_open(run, &setup, NULL);
	for (unsigned i = 0; i < run->threads; i++)
		callers[i] = (struct caller){
			.subject = subject,
			.first = calls->dealt ? i : i * each,
			.stride = calls->dealt ? run->threads : 1,
			.count = each,
			.requests = run->timers + i * calls->requests,
			.randoms = randoms_from(run->seed + i),
		};
	if (calls->dealt)
		driver_arm_all(run->timers, calls->from_ns, calls->to_ns, run->seed);
	if (run->threads > 1)
		(void)team_run(run->threads, caller_arm, NULL);
	else
		caller_arm(0, NULL);
	driver_settle();
}

static struct team_times callers_run(unsigned threads, uint64_t duration_ns)
{
	struct team_times times = { .start_ns = now_ns(), .cpu_ns = thread_cpu_ns() };

	until_ns = times.start_ns + duration_ns;
	if (threads > 1)
		return team_run(threads, caller_run, NULL);
	driver_within(caller_run_alone, NULL);
	times.cpu_ns = thread_cpu_ns() - times.cpu_ns;
	return times;
}

static struct calls_times callers_together(const struct run *run)
{
	unsigned warm_divisor = calls->warm_divisor > 0 ? calls->warm_divisor : 4;
	bool until_applied = calls->until_applied ||
	                     (run->threads > 1 && (run->subject->can & CAN_ANY_THREAD) == 0);
	struct calls_times times = { 0 };
	uint64_t done_ns, applied_ns, cpu_ns, delivered;
	struct team_times team;

	(void)callers_run(run->threads, run->duration_ns / warm_divisor);
	driver_settle();
	for (unsigned i = 0; calls->arms && i < run->threads; i++)
		callers[i].arms = &calls->arms[i];
	times.before = driver_counts();
	delivered = driver_delivered();
	cpu_ns = process_cpu_ns();
	team = callers_run(run->threads, run->duration_ns);
	done_ns = now_ns();
	times.after = driver_counts();
	driver_settle();
	applied_ns = now_ns();
	times.cpu_ns = process_cpu_ns() - cpu_ns;
	times.wall_ns = (until_applied ? applied_ns : done_ns) - team.start_ns;
	times.settle_ns = applied_ns - done_ns;
	times.callers_ns = team.cpu_ns;
	times.delivered = driver_delivered() - delivered;
	for (unsigned i = 0; i < run->threads; i++) {
		times.ops += callers[i].ops;
		times.refused += callers[i].refused;
	}
	return times;
}

/* ---- a service for each caller ---- */

struct shared {
	pthread_barrier_t opened;
	struct calls_times times[TEAM_MAX];
};

_Noreturn static void caller_child(const struct run *run, struct shared *shared, unsigned member)
{
	struct run mine = *run;

	mine.timers = run->timers / run->threads;
	mine.threads = 1;
	mine.seed = run->seed + member;
	team_pin(member);
	callers_open(&mine);
	(void)pthread_barrier_wait(&shared->opened);
	shared->times[member] = callers_together(&mine);
	_exit(0);
}

static struct calls_times callers_apart(const struct run *run)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
	                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct calls_times times = { 0 };
	pthread_barrierattr_t attributes;
	int status;

	if (shared == MAP_FAILED)
		subject_fail("mmap", errno);
	(void)pthread_barrierattr_init(&attributes);
	(void)pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	(void)pthread_barrier_init(&shared->opened, &attributes, run->threads);
	for (unsigned i = 0; i < run->threads; i++) {
		pid_t child = fork();

		if (child < 0)
			subject_fail("fork", errno);
		if (child == 0)
			caller_child(run, shared, i);
	}
	for (unsigned i = 0; i < run->threads; i++)
		if (wait(&status) < 0 || status != 0)
			subject_fail("a caller's process", 0);
	for (unsigned i = 0; i < run->threads; i++) {
		times.ops += shared->times[i].ops;
		times.cpu_ns += shared->times[i].cpu_ns;
		times.callers_ns += shared->times[i].callers_ns;
		if (shared->times[i].wall_ns > times.wall_ns)
			times.wall_ns = shared->times[i].wall_ns;
	}
	return times;
}

struct calls_times callers_measure(const struct run *run, struct result *result,
                                   const struct calls *wanted)
{
	struct calls_times times;

	calls = wanted;
	if (calls->apart && run->threads > 1 && (run->subject->can & LOOP_EACH) != 0) {
		times = callers_apart(run);
	} else {
		callers_open(run);
		times = callers_together(run);
	}
	result->ns_per_op = (double)times.wall_ns / (double)times.ops;
	result->cpu_ns_per_op = (double)times.cpu_ns / (double)times.ops;
	if (calls->caller_ns)
		result_add(result, "caller_ns", (double)times.callers_ns / (double)times.ops);
	return times;
}
