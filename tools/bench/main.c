/* SPDX-License-Identifier: MIT */
/*
 * Measures timerhub and the services that a user would choose between. A group is one workload with
 * one number of timers and of threads; each of its rounds measures each subject once, in a process
 * of its own, so that measurements do not affect each other. The medians of a group are printed as
 * rows of a table in Markdown, with a column for each subject.
 */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clocks.h"
#include "histogram.h"
#include "thread_team.h"
#include "workload.h"

#define LIST_MAX 32
#define ROUNDS_MAX 64
#define MEASURE_SECONDS_MAX 600

static const char usage[] =
	"usage: timerhub-bench [options]\n"
	"  --workload A,B     measure only these workloads\n"
	"  --subjects A,B     measure only these subjects\n"
	"  --timers N,M       measure with these numbers of timers\n"
	"  --threads N,M      measure with these numbers of threads\n"
	"  --rounds N         measure each result N times and print the median (5)\n"
	"  --duration MS      duration of a measurement, if the workload has none (300)\n"
	"  --list             list the workloads and subjects of this build\n";

/* clang-format off */
static const struct workload workloads[] = {
	{ "server",
	  "a message: a record, its connection's idle timeout, a request ended, one started",
	  SERVER, { 1000, 100000 }, { 1 }, 0, server_measure },
	{ "refresh", "re-arm a random timer to a minute from now",
	  TIMERS, { 10000, 100000, 1000000, 10000000 }, { EACH_CPU }, 0, refresh_measure },
	{ "churn", "cancel a random timer and arm a new one",
	  TIMERS, { 10000, 1000000 }, { 1 }, 0, churn_measure },
	{ "busy", "arm and cancel while timers expire",
	  TIMERS | CROSS, { 4000000 }, { EACH_CPU }, 0, busy_measure },
	{ "burst", "deliver a timer, all due within a millisecond",
	  TIMERS, { 1000000 }, { 1 }, 0, burst_measure },
	{ "lateness", "how late timers come, 10^4 over a second",
	  LATE, { 10000 }, { 1 }, 9, lateness_measure },
	{ "memory", "the first arm of a timer; resident bytes a timer",
	  TIMERS, { 10, 1000, 1000000 }, { 1 }, 1, memory_measure },
	{ "durable", "put a task that is on disk when the call returns",
	  DURABLE, { 1 }, { 1, 16, 64 }, 0, durable_measure },
	{ "cycle", "put a due task, take it, acknowledge it, all durable",
	  DURABLE | FINISHES, { 1 }, { 1, 16, 64 }, 0, cycle_measure },
	{ .name = NULL },
};
/* clang-format on */

const char *bench_folder;

static struct options {
	const char *workloads, *subjects; /* names with commas between; NULL: all */
	/* Lists that end with 0; an empty one means the workload's numbers. */
	uint32_t timers[LIST_MAX + 1], threads[LIST_MAX + 1];
	uint32_t rounds, duration_ms;
} options = { .rounds = 5, .duration_ms = 300 };

/* ---- results ---- */

void result_add(struct result *result, const char *name, double value)
{
	unsigned i = result->extras_count++;

	if (i == EXTRAS_MAX)
		subject_fail("too many extras", 0);
	(void)snprintf(result->extras[i].name, sizeof(result->extras[i].name), "%s", name);
	result->extras[i].value = value;
}

void result_add_durations(struct result *result, const struct histogram *histogram)
{
	result_add(result, "p50 us", histogram_quantile_ns(histogram, 0.5) / NS_PER_US);
	result_add(result, "p99 us", histogram_quantile_ns(histogram, 0.99) / NS_PER_US);
	result_add(result, "max us", (double)histogram->max_ns / NS_PER_US);
}

struct meter meter_start(void)
{
	return (struct meter){ .cpu_ns = process_cpu_ns(), .start_ns = now_ns() };
}

void meter_stop(const struct meter *meter, struct result *result, uint64_t ops)
{
	result->ns = (double)(now_ns() - meter->start_ns) / (double)ops;
	result->cpu_ns = (double)(process_cpu_ns() - meter->cpu_ns) / (double)ops;
}

/* ---- options ---- */

_Noreturn static void usage_error(const char *what, const char *argument)
{
	(void)fprintf(stderr, "timerhub-bench: %s: %s\n%s", what, argument, usage);
	exit(2);
}

static uint32_t number_from(const char *text, uint32_t max)
{
	char *end;
	double value = strtod(text, &end); /* accepts 1e6, too */

	if (*end != '\0' || !(value >= 1 && value <= max))
		usage_error("the number is not in range", text);
	return (uint32_t)value;
}

static void numbers_from(char *text, uint32_t max, uint32_t *ret_numbers)
{
	unsigned count = 0;

	for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
		if (count == LIST_MAX)
			usage_error("the list has too many numbers", word);
		ret_numbers[count++] = number_from(word, max);
	}
	ret_numbers[count] = 0;
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

static void options_set(int option)
{
	switch (option) {
	case 'w':
		options.workloads = optarg;
		break;
	case 's':
		options.subjects = optarg;
		break;
	case 'n':
		numbers_from(optarg, 60000000, options.timers);
		break;
	case 't':
		numbers_from(optarg, TEAM_MAX, options.threads);
		break;
	case 'r':
		options.rounds = number_from(optarg, ROUNDS_MAX);
		break;
	case 'd':
		options.duration_ms = number_from(optarg, 60000);
		break;
	case 'l':
		list();
		exit(0);
	case 'h':
		(void)fputs(usage, stdout);
		exit(0);
	default:
		(void)fputs(usage, stderr);
		exit(2);
	}
}

static void options_read(int argc, char **argv)
{
	static const struct option names[] = {
		{ "workload", required_argument, NULL, 'w' },
		{ "subjects", required_argument, NULL, 's' },
		{ "timers", required_argument, NULL, 'n' },
		{ "threads", required_argument, NULL, 't' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "duration", required_argument, NULL, 'd' },
		{ "list", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1)
		options_set(option);
	if (optind < argc)
		usage_error("unexpected argument", argv[optind]);
}

/* ---- the folder of durable tasks ---- */

/* Stores the path of a new folder, which must not be in memory, where a sync costs nothing. */
static void folder_make(char *path, size_t bytes)
{
	const char *base = getenv("TMPDIR");

	(void)snprintf(path, bytes, "%s/timerhub-bench-XXXXXX", base ? base : "/var/tmp");
	if (!mkdtemp(path))
		subject_fail(path, errno);
}

static void folder_remove(const char *path)
{
	DIR *directory = opendir(path);
	const struct dirent *entry;

	while (directory && (entry = readdir(directory)))
		if (entry->d_name[0] != '.')
			(void)unlinkat(dirfd(directory), entry->d_name, 0);
	if (directory)
		(void)closedir(directory);
	(void)rmdir(path);
}

/* ---- measurements ---- */

_Noreturn static void measure_inside(const struct workload *workload, const struct run *run,
                                     int out)
{
	static struct result result;

	(void)alarm(MEASURE_SECONDS_MAX);
	workload->measure(run, &result);
	_exit(write(out, &result, sizeof(result)) == sizeof(result) ? 0 : 1);
}

/* Returns false if the measurement failed; its process has printed why. */
static bool measure(const struct workload *workload, const struct run *run,
                    struct result *ret_result)
{
	int fds[2], status = 1;
	char folder[512];
	ssize_t got;
	pid_t child;

	if ((workload->needs & DURABLE) != 0) {
		folder_make(folder, sizeof(folder));
		bench_folder = folder;
	}
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
	if ((workload->needs & DURABLE) != 0)
		folder_remove(folder);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 && got == sizeof(*ret_result);
}

/* ---- groups ---- */

static struct result results[LIST_MAX][ROUNDS_MAX]; /* of the subjects, in this group */
static unsigned measured[LIST_MAX];                 /* how many rounds have not failed */
static bool in_group[LIST_MAX];
static bool failed, any;

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* Returns a value by its name, or a negative number if the result has none. */
static double value_of(const struct result *result, const char *name)
{
	if (strcmp(name, "ns") == 0)
		return result->ns;
	if (strcmp(name, "CPU ns") == 0)
		return result->cpu_ns;
	for (unsigned i = 0; i < result->extras_count; i++)
		if (strcmp(name, result->extras[i].name) == 0)
			return result->extras[i].value;
	return -1;
}

static void print_value(unsigned subject, const char *name)
{
	double values[ROUNDS_MAX], median;
	unsigned count = measured[subject];

	for (unsigned i = 0; i < count; i++)
		values[i] = value_of(&results[subject][i], name);
	if (count == 0 || values[0] < 0) {
		(void)printf(" %s |", in_group[subject] && count == 0 ? "failed" : "");
		return;
	}
	qsort(values, count, sizeof(values[0]), compare);
	median = (values[(count - 1) / 2] + values[count / 2]) / 2;
	(void)printf(" %.*f |", median < 10 ? 1 : 0, median);
}

static void print_row(const struct workload *workload, uint32_t timers, unsigned threads,
                      const char *name)
{
	(void)printf("| %s", workload->name);
	if (timers > 1)
		(void)printf(", %u timers", timers);
	(void)printf(", %u thread%s: %s |", threads, threads > 1 ? "s" : "", name);
	for (unsigned i = 0; subjects[i]; i++)
		if (named(options.subjects, subjects[i]->name))
			print_value(i, name);
	(void)printf("\n");
	(void)fflush(stdout);
}

static void print_group(const struct workload *workload, uint32_t timers, unsigned threads)
{
	const char *printed[EXTRAS_MAX];
	unsigned count = 0;

	print_row(workload, timers, threads, "ns");
	print_row(workload, timers, threads, "CPU ns");
	for (unsigned i = 0; subjects[i]; i++)
		for (unsigned j = 0; measured[i] > 0 && j < results[i][0].extras_count; j++) {
			const char *name = results[i][0].extras[j].name;
			unsigned k = 0;

			while (k < count && strcmp(printed[k], name) != 0)
				k++;
			if (k < count || count == EXTRAS_MAX)
				continue;
			printed[count++] = name;
			print_row(workload, timers, threads, name);
		}
}

static bool suits(const struct subject *subject, const struct workload *workload, uint32_t timers,
                  unsigned threads)
{
	return named(options.subjects, subject->name) &&
	       (subject->can & workload->needs) == workload->needs &&
	       (threads == 1 || (subject->can & CROSS) != 0 || subject->alone) &&
	       (subject->timers_max == 0 || timers <= subject->timers_max);
}

static void measure_group(const struct workload *workload, uint32_t timers, unsigned threads)
{
	unsigned rounds = options.rounds, suited = 0;

	if (workload->rounds == 1 || rounds < workload->rounds)
		rounds = workload->rounds;
	for (unsigned i = 0; subjects[i]; i++) {
		measured[i] = 0;
		in_group[i] = suits(subjects[i], workload, timers, threads);
		suited += in_group[i];
	}
	if (suited == 0)
		return;
	any = true;
	for (unsigned round = 0; round < rounds; round++)
		for (unsigned i = 0; subjects[i]; i++) {
			struct run run = { .subject = subjects[i],
				           .timers = timers,
				           .threads = threads,
				           .duration_ns = options.duration_ms * NS_PER_MS,
				           .seed = round };

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
static void numbers_of_cpus(uint32_t ret_numbers[LIST_MAX + 1])
{
	unsigned most = cpus_count() > 4 ? cpus_count() - 2 : 2, count = 0;

	for (uint32_t threads = 1; threads < most; threads *= 2)
		ret_numbers[count++] = threads;
	ret_numbers[count++] = most;
	ret_numbers[count] = 0;
}

static void measure_workload(const struct workload *workload)
{
	const uint32_t *threads = workload->threads, *timers = workload->timers;
	uint32_t each_cpu[LIST_MAX + 1];

	numbers_of_cpus(each_cpu);
	if (options.timers[0] > 0 && timers[0] > 1)
		timers = options.timers;
	if (options.threads[0] > 0 && (threads[0] == EACH_CPU || threads[1] > 0))
		threads = options.threads;
	else if (threads[0] == EACH_CPU)
		threads = each_cpu;
	for (; *timers > 0; timers++)
		for (const uint32_t *count = threads; *count > 0; count++)
			measure_group(workload, *timers, *count);
}

int main(int argc, char **argv)
{
	options_read(argc, argv);
	(void)printf("| median of rounds, an operation |");
	for (unsigned i = 0; subjects[i]; i++)
		if (named(options.subjects, subjects[i]->name))
			(void)printf(" %s |", subjects[i]->name);
	(void)printf("\n|---|");
	for (unsigned i = 0; subjects[i]; i++)
		if (named(options.subjects, subjects[i]->name))
			(void)printf("---|");
	(void)printf("\n");
	for (const struct workload *workload = workloads; workload->name; workload++)
		if (named(options.workloads, workload->name))
			measure_workload(workload);
	if (!any)
		usage_error("nothing to measure", "see --list");
	return failed ? 1 : 0;
}
