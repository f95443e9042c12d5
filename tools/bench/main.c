/* SPDX-License-Identifier: MIT */
/*
 * Measures timerhub and other timer services. A group is one workload at one size; each of its
 * rounds measures each subject (measured service) once with each number of threads. Groups are
 * printed as they end, and last the bars, which are timerhub's targets.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clocks.h"
#include "measure_in_child.h"
#include "report.h"
#include "thread_team.h"

#define LIST_MAX 32

static const char usage[] =
	"usage: timerhub-bench [options]\n"
	"  --workload A,B     measure only these workloads\n"
	"  --subjects A,B     measure only these subjects\n"
	"  --timers N,M       measure with these numbers of timers\n"
	"  --threads N,M      measure with these numbers of threads\n"
	"  --no-store         leave out durable tasks\n"
	"  --rounds N         measure each result N times and print the median (5)\n"
	"  --duration MS      duration of a measurement, if the workload has none (300)\n"
	"  --json FILE        also write a line of JSON for each result to FILE\n"
	"  --list             list the workloads and subjects of this build\n";

struct names {
	const char *words[LIST_MAX];
	unsigned count;
};

struct numbers {
	uint32_t values[LIST_MAX + 1]; /* the list ends with 0 */
	unsigned count;
};

struct options {
	struct names workloads, subjects; /* an empty list means all workloads or all subjects */
	struct numbers timers, threads;   /* an empty list means the workload's default numbers */
	uint32_t rounds, duration_ms;
	FILE *json; /* output of --json, or NULL */
	bool no_store;
};

/* ---- options ---- */

_Noreturn static void usage_error(const char *what, const char *argument)
{
	(void)fprintf(stderr, "timerhub-bench: %s: %s\n%s", what, argument, usage);
	exit(2);
}

static struct names names_from(char *text)
{
	struct names names = { .count = 0 };

	for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
		if (names.count == LIST_MAX)
			usage_error("the list has too many elements", word);
		names.words[names.count++] = word;
	}
	return names;
}

static uint32_t number_from(const char *text, uint32_t max)
{
	char *end;
	double value = strtod(text, &end); /* strtod() accepts numbers such as 1e6 */

	if (*end != '\0' || value < 1 || value > max)
		usage_error("the number is not in range", text);
	return (uint32_t)value;
}

static struct numbers numbers_from(char *text, uint32_t max)
{
	struct names names = names_from(text);
	struct numbers numbers = { .count = names.count };

	for (unsigned i = 0; i < names.count; i++)
		numbers.values[i] = number_from(names.words[i], max);
	return numbers;
}

static void list_and_exit(void)
{
	(void)printf("workloads:\n");
	for (const struct workload *workload = workloads; workload->name; workload++)
		(void)printf("  %-20s%s\n", workload->name, workload->what);
	(void)printf("subjects:\n");
	for (unsigned i = 0; subjects[i]; i++)
		(void)printf("  %-20s%s\n", subjects[i]->name, subjects[i]->how);
	exit(0);
}

static void check_names(const struct options *options)
{
	for (unsigned i = 0; i < options->workloads.count; i++)
		if (!workload_find(options->workloads.words[i]))
			usage_error("there is no such workload", options->workloads.words[i]);
	for (unsigned i = 0; i < options->subjects.count; i++)
		if (!subject_find(options->subjects.words[i]))
			usage_error("there is no such subject in this build",
			            options->subjects.words[i]);
}

static void options_set(struct options *options, int option)
{
	switch (option) {
	case 'w':
		options->workloads = names_from(optarg);
		break;
	case 's':
		options->subjects = names_from(optarg);
		break;
	case 'n':
		options->timers = numbers_from(optarg, 60000000);
		break;
	case 't':
		options->threads = numbers_from(optarg, TEAM_MAX);
		break;
	case 'o':
		options->no_store = true;
		break;
	case 'r':
		options->rounds = number_from(optarg, ROUNDS_MAX);
		break;
	case 'd':
		options->duration_ms = number_from(optarg, 60000);
		break;
	case 'j':
		options->json = fopen(optarg, "we");
		if (!options->json)
			usage_error("cannot be written", optarg);
		break;
	case 'l':
		list_and_exit();
		break;
	case 'h':
		(void)fputs(usage, stdout);
		exit(0);
	default:
		(void)fputs(usage, stderr);
		exit(2);
	}
}

static struct options options_from(int argc, char **argv)
{
	static const struct option names[] = {
		{ "workload", required_argument, NULL, 'w' },
		{ "subjects", required_argument, NULL, 's' },
		{ "timers", required_argument, NULL, 'n' },
		{ "threads", required_argument, NULL, 't' },
		{ "no-store", no_argument, NULL, 'o' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "duration", required_argument, NULL, 'd' },
		{ "json", required_argument, NULL, 'j' },
		{ "list", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct options options = { .rounds = 5, .duration_ms = 300 };
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1)
		options_set(&options, option);
	if (optind < argc)
		usage_error("unexpected argument", argv[optind]);
	check_names(&options);
	return options;
}

/* ---- the plan ---- */

static bool named(const struct names *names, const char *name)
{
	for (unsigned i = 0; i < names->count; i++)
		if (strcmp(names->words[i], name) == 0)
			return true;
	return names->count == 0;
}

static bool workload_has_threads(const struct workload *workload)
{
	return workload->threads[0] > 1 || workload->threads[1] > 0;
}

static bool suits(const struct subject *subject, const struct workload *workload, uint32_t timers,
                  unsigned threads)
{
	if ((subject->can & workload->needs) != workload->needs)
		return false;
	if (subject->there && !subject->there())
		return false;
	if (subject->batches && (workload->needs & (CAN_BATCH | CAN_SERVE)) == 0)
		return false;
	if (threads > 1 && (subject->can & CAN_CROSS) == 0 && !subject->alone)
		return false;
	return subject->timers_max == 0 || timers <= subject->timers_max;
}

/* --no-store leaves out durable tasks. */
static bool left_out(const struct options *options, const struct workload *workload)
{
	return options->no_store && (workload->needs & (CAN_PUT_DURABLY | CAN_FINISH_DURABLY |
	                                                CAN_KEEP_MANY | CAN_SHARE_FILE)) != 0;
}

static void plan_group(struct table *table, const struct options *options,
                       const struct workload *workload, uint32_t timers, unsigned threads)
{
	for (unsigned i = 0; subjects[i]; i++)
		if (named(&options->subjects, subjects[i]->name) &&
		    suits(subjects[i], workload, timers, threads) && !left_out(options, workload))
			table_add(table, workload, subjects[i], timers, threads);
}

/* 1, 2, 4 ... and two less than the CPUs, which leaves one each to the owner and the consumer. */
static void numbers_of_cpus(struct numbers *ret)
{
	unsigned most = cpus_count() > 4 ? cpus_count() - 2 : 2;

	for (uint32_t threads = 1; threads < most; threads *= 2)
		ret->values[ret->count++] = threads;
	ret->values[ret->count++] = most;
}

static void plan(struct table *table, const struct options *options)
{
	struct numbers each_cpu = { 0 };

	numbers_of_cpus(&each_cpu);
	for (const struct workload *workload = workloads; workload->name; workload++) {
		const uint32_t *threads = workload->threads;
		const uint32_t *timers =
			options->timers.count > 0 ? options->timers.values : workload->timers;

		if (options->threads.count > 0 && workload_has_threads(workload))
			threads = options->threads.values;
		else if (threads[0] == EACH_CPU)
			threads = each_cpu.values;

		if (!named(&options->workloads, workload->name))
			continue;
		for (; *timers > 0; timers++)
			for (const uint32_t *count = threads; *count > 0; count++)
				plan_group(table, options, workload, *timers, *count);
	}
}

/* ---- the measurements ---- */

static void progress(const struct table *table, const struct cell *cell, unsigned round)
{
	if (isatty(STDERR_FILENO))
		(void)fprintf(stderr, "\r\033[K[%u/%u] %s, %u timers, %u threads: %s, round %u",
		              (unsigned)(cell - table->cells) + 1, table->count,
		              cell->workload->name, cell->timers, cell->threads,
		              cell->subject->name, round + 1);
}

static void measure_cell(const struct options *options, struct cell *cell, unsigned round)
{
	struct run run = {
		.subject = cell->subject,
		.timers = cell->timers,
		.threads = cell->threads,
		.duration_ns = options->duration_ms * NS_PER_MS,
		.seed = round,
	};

	/* If a measurement failed, the next rounds do not repeat it. */
	if (cell->rounds == round && measure(cell->workload, &run, &cell->results[round]))
		cell->rounds++;
}

static void measure_group(const struct options *options, struct table *table, unsigned from,
                          unsigned to)
{
	unsigned rounds = options->rounds;
	unsigned wanted = table->cells[from].workload->rounds;

	if (wanted == 1 || rounds < wanted)
		rounds = wanted;
	for (unsigned round = 0; round < rounds; round++)
		for (unsigned i = from; i < to; i++) {
			progress(table, &table->cells[i], round);
			measure_cell(options, &table->cells[i], round);
		}
	if (isatty(STDERR_FILENO))
		(void)fputs("\r\033[K", stderr);
	for (unsigned first = from, i = from + 1; i <= to; i++)
		if (i == to || table->cells[i].threads != table->cells[first].threads) {
			report_group(table, first, i);
			first = i;
		}
	for (unsigned i = from; options->json && i < to; i++)
		report_json(&table->cells[i], options->json);
	if (options->json)
		(void)fflush(options->json); /* an interrupted run keeps the results */
}

/* The report compares the rates of different numbers of threads, so they are in one group. */
static bool same_group(const struct cell *a, const struct cell *b)
{
	return a->workload == b->workload && a->timers == b->timers;
}

int main(int argc, char **argv)
{
	struct options options = options_from(argc, argv);
	struct table table = { 0 };

	plan(&table, &options);
	for (unsigned from = 0, to; from < table.count; from = to) {
		for (to = from + 1; to < table.count; to++)
			if (!same_group(&table.cells[from], &table.cells[to]))
				break;
		measure_group(&options, &table, from, to);
	}
	report_bars(&table);
	if (options.json && fclose(options.json) != 0)
		return 1;
	return 0;
}
