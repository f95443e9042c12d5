/* SPDX-License-Identifier: MIT */
/*
 * Measures timerhub and the services that a user would choose between. A group is one workload with
 * one number of timers and of threads; each of its rounds measures each subject once, in a process
 * of its own, so that measurements do not affect each other. The medians of a group are printed as
 * rows of a table in Markdown, with a column for each subject.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clocks.h"
#include "driver.h"

#define ROUNDS_MAX 64
#define NUMBERS_MAX 16
#define MEASURE_SECONDS_MAX 600

static const char usage[] =
	"usage: timerhub-bench [options]\n"
	"  --workload A,B     measure only these workloads\n"
	"  --subjects A,B     measure only these subjects\n"
	"  --rounds N         measure each result N times and print the median (5)\n"
	"  --list             list the workloads and subjects of this build\n"
	"Durable tasks stay in folders in $TMPDIR, which tools/run-bench removes.\n";

/* clang-format off */
static const struct workload workloads[] = {
	{ "server",
	  "a message: a record, its connection's idle timeout, a request ended, one started",
	  SERVER, { 1000, 100000 }, { 1 }, server_measure },
	{ "refresh", "re-arm a random timer to a minute from now",
	  TIMERS, { 10000, 100000, 1000000, 10000000 }, { EACH_CPU }, refresh_measure },
	{ "churn", "cancel a random timer and arm a new one",
	  TIMERS, { 10000, 1000000 }, { 1 }, churn_measure },
	{ "busy", "arm and cancel while timers expire",
	  TIMERS | CROSS, { 4000000 }, { EACH_CPU }, busy_measure },
	{ "lateness", "how late timers come, 10^4 over a second",
	  LATE, { 10000 }, { 1 }, lateness_measure },
	{ "durable", "put a task that is on disk when the call returns",
	  DURABLE, { 1 }, { 1, 16, 64 }, durable_measure },
	{ "cycle", "put a due task, take it, acknowledge it, all durable",
	  DURABLE | FINISHES, { 1 }, { 1, 16, 64 }, cycle_measure },
	{ .name = NULL },
};
/* clang-format on */

const char *bench_folder;

static const char *const figure_names[FIGURES] = {
	"ns", "CPU ns", "p50 us", "p99 us", "max us", "early",
};

static struct options {
	const char *workloads, *subjects; /* names with commas between; NULL: all */
	unsigned rounds;
} options = { .rounds = 5 };

struct meter meter_start(void)
{
	return (struct meter){ .cpu_ns = process_cpu_ns(), .start_ns = now_ns() };
}

void meter_stop(const struct meter *meter, struct result *result, uint64_t ops)
{
	result->figures[WALL_NS] = (double)(now_ns() - meter->start_ns) / (double)ops;
	result->figures[CPU_NS] = (double)(process_cpu_ns() - meter->cpu_ns) / (double)ops;
}

/* ---- options ---- */

_Noreturn static void usage_error(const char *what, const char *argument)
{
	(void)fprintf(stderr, "timerhub-bench: %s: %s\n%s", what, argument, usage);
	exit(2);
}

/* Tells whether the name is in a list with commas between, or the list is NULL. */
static bool named(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = list; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
			return true;
	}
	return !list;
}

static void list(void)
{
	(void)printf("workloads:\n");
	for (const struct workload *workload = workloads; workload->name; workload++)
		(void)printf("  %-20s%s\n", workload->name, workload->what);
	(void)printf("subjects:\n");
	for (unsigned i = 0; subjects[i]; i++)
		(void)printf("  %-20s%s\n", subjects[i]->name, subjects[i]->how);
}

static void options_read(char **words)
{
	for (; *words; words++) {
		const char *name = *words;

		if (strcmp(name, "--help") == 0 || strcmp(name, "--list") == 0) {
			if (name[2] == 'l')
				list();
			else
				(void)fputs(usage, stdout);
			exit(0);
		}
		if (!*++words)
			usage_error("no such option, or its value is missing", name);
		if (strcmp(name, "--workload") == 0)
			options.workloads = *words;
		else if (strcmp(name, "--subjects") == 0)
			options.subjects = *words;
		else if (strcmp(name, "--rounds") == 0)
			options.rounds = (unsigned)strtoul(*words, NULL, 10);
		else
			usage_error("there is no option", name);
	}
	if (options.rounds == 0 || options.rounds > ROUNDS_MAX)
		usage_error("the number is not in range", "--rounds");
}

/* ---- measurements ---- */

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

_Noreturn static void measure_inside(const struct workload *workload, const struct run *run,
                                     int out)
{
	struct result result;

	(void)alarm(MEASURE_SECONDS_MAX);
	if ((workload->needs & DURABLE) != 0)
		folder_make();
	for (unsigned i = 0; i < FIGURES; i++)
		result.figures[i] = -1;
	workload->measure(run, &result);
	_exit(write(out, &result, sizeof(result)) == sizeof(result) ? 0 : 1);
}

/* Returns false if the measurement failed; its process has printed why. */
static bool measure(const struct workload *workload, const struct run *run,
                    struct result *ret_result)
{
	int fds[2], status = 1;
	ssize_t got;
	pid_t child;

	if (pipe(fds) < 0)
		subject_fail("pipe", errno);
	child = fork();
	if (child < 0)
		subject_fail("fork", errno);
	if (child == 0)
		measure_inside(workload, run, fds[1]);
	(void)close(fds[1]);
	got = read(fds[0], ret_result, sizeof(*ret_result));
	(void)close(fds[0]);
	if (waitpid(child, &status, 0) != child)
		subject_fail("waitpid", errno);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 && got == sizeof(*ret_result);
}

/* ---- groups ---- */

static struct result results[SUBJECTS_MAX][ROUNDS_MAX]; /* of the subjects, in this group */
static unsigned measured[SUBJECTS_MAX];                 /* how many rounds have not failed */
static bool in_group[SUBJECTS_MAX];
static bool failed, any;

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static void print_value(unsigned subject, enum figure figure)
{
	double values[ROUNDS_MAX], median;
	unsigned count = measured[subject];

	for (unsigned i = 0; i < count; i++)
		values[i] = results[subject][i].figures[figure];
	if (count == 0 || values[0] < 0) {
		(void)printf(" %s |", in_group[subject] && count == 0 ? "failed" : "");
		return;
	}
	qsort(values, count, sizeof(values[0]), compare);
	median = (values[(count - 1) / 2] + values[count / 2]) / 2;
	(void)printf(" %.*f |", median < 10 ? 1 : 0, median);
}

static void print_group(const struct workload *workload, uint32_t timers, unsigned threads)
{
	for (unsigned figure = 0; figure < FIGURES; figure++) {
		bool is_measured = false;

		for (unsigned i = 0; subjects[i]; i++)
			is_measured |= measured[i] > 0 && results[i][0].figures[figure] >= 0;
		if (!is_measured && figure != CPU_NS)
			continue;
		(void)printf("| %s", workload->name);
		if (timers > 1)
			(void)printf(", %u timers", timers);
		(void)printf(", %u thread%s: %s |", threads, threads > 1 ? "s" : "",
		             figure_names[figure]);
		for (unsigned i = 0; subjects[i]; i++)
			if (named(options.subjects, subjects[i]->name))
				print_value(i, figure);
		(void)printf("\n");
	}
	(void)fflush(stdout);
}

static bool suits(const struct subject *subject, const struct workload *workload, uint32_t timers,
                  unsigned threads)
{
	return named(options.subjects, subject->name) &&
	       (subject->can & workload->needs) == workload->needs &&
	       (threads == 1 || (subject->can & (CROSS | ALONE)) != 0) &&
	       (subject->timers_max == 0 || timers <= subject->timers_max);
}

static void measure_group(const struct workload *workload, uint32_t timers, unsigned threads)
{
	unsigned suited = 0;

	for (unsigned i = 0; subjects[i]; i++) {
		measured[i] = 0;
		in_group[i] = suits(subjects[i], workload, timers, threads);
		suited += in_group[i];
	}
	if (suited == 0)
		return;
	any = true;
	for (unsigned round = 0; round < options.rounds; round++)
		for (unsigned i = 0; subjects[i]; i++) {
			struct run run = { subjects[i], timers, threads, .seed = round };

			/* what failed once is not tried again */
			if (!in_group[i] || measured[i] < round)
				continue;
			if (measure(workload, &run, &results[i][round]))
				measured[i]++;
			else
				failed = true;
		}
	print_group(workload, timers, threads);
}

/* 1, 2, 4 ... and two less than the CPUs, which leaves one each to the owner and the consumer. */
static void numbers_of_cpus(uint32_t ret_numbers[NUMBERS_MAX])
{
	unsigned most = cpus_count() > 4 ? cpus_count() - 2 : 2, count = 0;

	if (most > TEAM_MAX)
		most = TEAM_MAX;
	for (uint32_t threads = 1; threads < most; threads *= 2)
		ret_numbers[count++] = threads;
	ret_numbers[count++] = most;
	ret_numbers[count] = 0;
}

int main(int argc, char **argv)
{
	uint32_t each_cpu[NUMBERS_MAX];

	options_read(argv + (argc > 0));
	numbers_of_cpus(each_cpu);
	(void)printf("| median of rounds, an operation |");
	for (unsigned i = 0; subjects[i]; i++)
		if (named(options.subjects, subjects[i]->name))
			(void)printf(" %s |", subjects[i]->name);
	(void)printf("\n|---|");
	for (unsigned i = 0; subjects[i]; i++)
		if (named(options.subjects, subjects[i]->name))
			(void)printf("---|");
	(void)printf("\n");
	for (const struct workload *workload = workloads; workload->name; workload++) {
		const uint32_t *threads =
			workload->threads[0] == EACH_CPU ? each_cpu : workload->threads;

		if (!named(options.workloads, workload->name))
			continue;
		for (const uint32_t *timers = workload->timers; *timers > 0; timers++)
			for (const uint32_t *count = threads; *count > 0; count++)
				measure_group(workload, *timers, *count);
	}
	if (!any)
		usage_error("nothing to measure", "see --list");
	return failed ? 1 : 0;
}
