/* SPDX-License-Identifier: MIT */
/*
 * Measures an idle service. In "idle", N timers are due in a minute or later, and the process idles
 * for 5 s. The context switches of every thread except the caller are counted, and, if strace is
 * installed, by a second run their system calls: two writes to an invalid descriptor mark the 5 s
 * in its output. Then the caller arms 10^5 timers that are not the earliest, and the time of an arm
 * and the number of arms that woke the owner are reported.
 *
 * "wakes" arms 20,000 timers with random deadlines of 1 to 60 s, and counts the calls that wake the
 * sleeping owner.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clocks.h"
#include "process_usage.h"
#include "workload_functions.h"
#include "workload_steps.h"

#define DELAY_FROM_NS (60 * NS_PER_SECOND)
#define DELAY_TO_NS (120 * NS_PER_SECOND)
#define IDLE_NS (5 * NS_PER_SECOND)
#define LATER_TIMERS 100000
#define TRACED_VARIABLE "TIMERHUB_BENCH_TRACED"
#define MARK_BEGIN "timerhub-bench idle begins"
#define MARK_END "timerhub-bench idle ends"

static void idle_mark(const char *mark)
{
	/* The write fails, and only strace sees the text. */
	ssize_t written = write(-1, mark, strlen(mark));

	(void)written;
}

static void idle_run(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers + LATER_TIMERS, .cross = true };
	const struct subject *subject = driver_open(run, &setup, NULL);
	uint64_t switches, wakes;
	struct meter meter;

	driver_arm_all(run->timers, DELAY_FROM_NS, DELAY_TO_NS, run->seed);
	driver_settle();
	sleep_until_ns(now_ns() + 100 * NS_PER_MS); /* wait until the owner has gone to sleep */
	switches = process_others_switches();
	idle_mark(MARK_BEGIN);
	sleep_until_ns(now_ns() + IDLE_NS);
	idle_mark(MARK_END);
	result_add(result, "switches", (double)(process_others_switches() - switches));
	wakes = driver_counts().submit_wakes;
	meter = meter_start();
	subject->tick();
	for (uint32_t i = 0; i < LATER_TIMERS; i++)
		subject_must(subject->arm(run->timers + i, DELAY_TO_NS + i));
	meter_stop(&meter, result, LATER_TIMERS);
	result_add(result, "arms_woke", (double)(driver_counts().submit_wakes - wakes));
}

/*
 * Count the system calls between the two marks in strace's output. Do not count the system calls of
 * the thread that wrote the marks.
 */
static double idle_count_calls(FILE *trace)
{
	int marker = 0, thread;
	char line[512], rest[400];
	bool inside = false;
	double calls = 0;

	while (fgets(line, sizeof(line), trace)) {
		if (sscanf(line, "%d %399[^\n]", &thread, rest) != 2)
			continue;
		if (strstr(rest, MARK_BEGIN)) {
			inside = true;
			marker = thread;
		} else if (strstr(rest, MARK_END)) {
			inside = false;
		} else if (inside && thread != marker && rest[0] != '<' && rest[0] != '+' &&
		           rest[0] != '-') {
			calls++;
		}
	}
	return marker != 0 ? calls : -1;
}

static void idle_exec_traced(const struct run *run, const char *trace_path)
{
	char program[512], timers[16];
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (length < 0 || !freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
		_exit(1);
	program[length] = '\0';
	(void)snprintf(timers, sizeof(timers), "%u", run->timers);
	(void)setenv(TRACED_VARIABLE, "1", 1);
	(void)execlp("strace", "strace", "-f", "-s", "64", "-o", trace_path, program, "--workload",
	             "idle", "--rounds", "1", "--timers", timers, "--subjects", run->subject->name,
	             (char *)NULL);
	_exit(1);
}

/* Returns the number of system calls of other threads, or -1 without strace. */
static double idle_trace(const struct run *run)
{
	char path[] = "/tmp/timerhub-bench-XXXXXX";
	int fd = mkstemp(path);
	double calls = -1;
	FILE *trace;
	pid_t child;

	if (fd < 0)
		return -1;
	child = fork();
	if (child == 0)
		idle_exec_traced(run, path);
	if (child > 0 && waitpid(child, NULL, 0) == child) {
		trace = fdopen(fd, "r");
		if (trace)
			calls = idle_count_calls(trace);
	}
	(void)unlink(path);
	return calls;
}

void idle_measure(const struct run *run, struct result *result)
{
	double calls = getenv(TRACED_VARIABLE) ? -1 : idle_trace(run);

	idle_run(run, result);
	if (calls >= 0)
		result_add(result, "system_calls", calls);
}

void wakes_measure(const struct run *run, struct result *result)
{
	struct subject_setup setup = { .timers = run->timers, .cross = true };
	struct subject_counts before, after;
	struct meter meter;

	(void)driver_open(run, &setup, NULL);
	driver_settle();
	before = driver_counts();
	meter = meter_start();
	driver_arm_all(run->timers, NS_PER_SECOND, 60 * NS_PER_SECOND, run->seed);
	meter_stop(&meter, result, run->timers);
	after = driver_counts();
	result_add(result, "submit_wakes", (double)(after.submit_wakes - before.submit_wakes));
	result_add(result, "owner_wakeups", (double)(after.owner_wakeups - before.owner_wakeups));
}
