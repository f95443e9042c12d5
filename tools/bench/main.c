/* SPDX-License-Identifier: MIT */
/*
 * Measures timerhub and the services that a user would choose between. A call of this program makes
 * one measurement, so that none affects another; tools/run-bench makes all, and prints the medians.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "workload.h"

#define MEASURE_SECONDS_MAX 600

static const char usage[] =
	"usage: timerhub-bench WORKLOAD TIMERS THREADS SUBJECT SEED\n"
	"       timerhub-bench\n"
	"Measures one subject, and prints the figures. Without arguments, prints the first four\n"
	"arguments of all measurements, in lines.\n"
	"Durable tasks stay in a folder in $TMPDIR, or in /var/tmp.\n";

/* clang-format off */
static const struct workload workloads[] = {
	/* a message: a record, its connection's idle timeout, a request ended, one started */
	{ "server", SERVER, { 1000, 100000 }, { 1 }, server_measure },
	/* re-arm a random timer to a minute from now */
	{ "refresh", TIMERS, { 10000, 100000, 1000000, 10000000 }, { EACH_CPU }, refresh_measure },
	/* cancel a random timer and arm a new one */
	{ "churn", TIMERS, { 10000, 1000000 }, { 1 }, churn_measure },
	/* arm and cancel while timers expire */
	{ "busy", TIMERS | CROSS, { 4000000 }, { EACH_CPU }, busy_measure },
	/* how late timers come, 10^4 over a second */
	{ "lateness", TIMERS, { 10000 }, { 1 }, lateness_measure },
	/* put a task that is on disk when the call returns */
	{ "durable", DURABLE, { 1 }, { 1, 16, 64 }, durable_measure },
	/* put a due task, take it, acknowledge it, all durable */
	{ "cycle", DURABLE | FINISHES, { 1 }, { 1, 16, 64 }, cycle_measure },
	{ .name = NULL },
};
/* clang-format on */

const char *bench_folder;

struct meter meter_start(void)
{
	return (struct meter){ .cpu_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID),
		               .start_ns = clock_monotonic_ns() };
}

void report(const char *name, double value)
{
	(void)printf("%s\t%f\n", name, value);
}

void meter_stop(const struct meter *meter, uint64_t ops)
{
	uint64_t wall_ns = clock_monotonic_ns() - meter->start_ns;

	report("ns", (double)wall_ns / (double)ops);
	report("CPU ns",
	       (double)(clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - meter->cpu_ns) / (double)ops);
}

/* Makes a folder, which must not be in memory, where a sync costs nothing. */
static void folder_make(void)
{
	static char path[512];
	const char *base = getenv("TMPDIR");

	(void)snprintf(path, sizeof(path), "%s/timerhub-bench-XXXXXX", base ? base : "/var/tmp");
	bench_folder = mkdtemp(path);
	if (!bench_folder)
		subject_fail(path, errno);
}

static void measure(const struct workload *workload, const struct run *run)
{
	(void)alarm(MEASURE_SECONDS_MAX);
	if ((workload->needs & DURABLE) != 0)
		folder_make();
	workload->measure(run);
	(void)fflush(stdout);
	_exit(0); /* other threads may still run */
}

static bool suits(const struct subject *subject, const struct workload *workload, uint32_t timers,
                  unsigned threads)
{
	return (subject->can & workload->needs) == workload->needs &&
	       (threads == 1 || (subject->can & (CROSS | ALONE)) != 0) &&
	       (subject->timers_max == 0 || timers <= subject->timers_max);
}

static void list(const struct workload *workload, uint32_t timers, unsigned threads)
{
	for (unsigned i = 0; subjects[i]; i++)
		if (suits(subjects[i], workload, timers, threads))
			(void)printf("%s %u %u %s\n", workload->name, timers, threads,
			             subjects[i]->name);
}

/* EACH_CPU: 1, 2, 4 and so on, up to all CPUs but those of the hub's thread and the consumer. */
static void list_threads(const struct workload *workload, uint32_t timers)
{
	unsigned most = cpus_count() > 4 ? cpus_count() - 2 : 2;

	if (workload->threads[0] != EACH_CPU) {
		for (const uint32_t *threads = workload->threads; *threads > 0; threads++)
			list(workload, timers, *threads);
		return;
	}
	if (most > TEAM_MAX)
		most = TEAM_MAX;
	for (unsigned threads = 1; threads < most; threads *= 2)
		list(workload, timers, threads);
	list(workload, timers, most);
}

int main(int argc, char **argv)
{
	struct run run = { .subject = NULL };

	for (const struct workload *workload = workloads; workload->name && argc == 1; workload++)
		for (const uint32_t *timers = workload->timers; *timers > 0; timers++)
			list_threads(workload, *timers);
	if (argc == 1)
		return 0;
	for (const struct workload *workload = workloads; workload->name && argc == 6; workload++) {
		if (strcmp(argv[1], workload->name) != 0)
			continue;
		run.timers = (uint32_t)strtoul(argv[2], NULL, 10);
		run.threads = (unsigned)strtoul(argv[3], NULL, 10);
		run.seed = strtoul(argv[5], NULL, 10);
		for (unsigned i = 0; subjects[i]; i++)
			if (strcmp(argv[4], subjects[i]->name) == 0)
				run.subject = subjects[i];
		if (run.subject && run.timers > 0 && run.threads > 0 && run.threads <= TEAM_MAX &&
		    suits(run.subject, workload, run.timers, run.threads))
			measure(workload, &run);
	}
	(void)fputs(usage, stderr);
	return 2;
}
