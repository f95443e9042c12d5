/* SPDX-License-Identifier: MIT */
/*
 * The program timerhub-top, which shows the counters of another process's hubs and loops, if these
 * were opened with TIMERHUB_OBSERVABLE or TIMERHUB_LOOP_OBSERVABLE. It maps the counters read-only.
 * It never stops the process, sends it no signal, and writes nothing to it. The manual page is
 * man/timerhub-top.1.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <console.h>
#include <when.h>

#include "base/clock.h"
#include "outputs.h"

struct options {
	bool given[128]; /* by the letter of the option */
	double interval_s;
	uint64_t watch_ns;
	pid_t pid; /* 0: no process is given */
};

static volatile sig_atomic_t stopped;

static void stop(int number)
{
	(void)number;
	stopped = 1;
}

const char console_tool[] = "timerhub-top";
const char console_help[] =
	"usage: timerhub-top [-1] [-j | -m] [-i SECONDS] [PID]\n"
	"       timerhub-top [-j] -w TIME PID\n"
	"\n"
	"Shows the timerhub hubs and loops of process PID, if it has opened them with\n"
	"TIMERHUB_OBSERVABLE or TIMERHUB_LOOP_OBSERVABLE. Without PID, lists the\n"
	"processes that have any.\n"
	"\n"
	"  -1, --once              print one reading and end; with -i, wait for one\n"
	"                          interval before the reading, and print rates\n"
	"  -j, --json              print JSON, one object on a line for each reading\n"
	"  -m, --metrics           print one reading as OpenMetrics text, for Prometheus\n"
	"  -i, --interval SECONDS  time between readings, 0.05 to 3600; default 1\n"
	"  -w, --watch TIME        print a line when events have waited longer than TIME,\n"
	"                          such as 200ms, with the thread and function to blame,\n"
	"                          and when that ends; until the process ends\n"
	"  -h, --help              print this help\n"
	"  -V, --version           print the version\n"
	"\n"
	"Exit status: 0 done; 1 there is no hub to watch; 2 wrong usage.\n";

static int complain(const char *what)
{
	fprintf(stderr, "timerhub-top: %s\n", what);
	return -1;
}

static enum status parse_value(int option, const char *text, struct options *options)
{
	struct when when;
	char *end;

	if (option == 'i') {
		options->interval_s = strtod(text, &end);
		/*
		 * The range check is written this way because it must also refuse a NaN: every
		 * comparison with a NaN is false.
		 */
		if (end == text || *end != 0 ||
		    !(options->interval_s >= 0.05 && options->interval_s <= 3600))
			return misused("--interval must be 0.05 to 3600 seconds", NULL);
	} else if (option == 'w') {
		if (!when_read(text, &when) || when.is_absolute || when.ns < 10 * NS_PER_MS ||
		    when.ns > 3600 * NS_PER_S)
			return misused("--watch must be a time from 10ms to 1h, such as 200ms",
			               NULL);
		options->watch_ns = when.ns;
	}
	return GOOD;
}

/*
 * Parses the command line into `options`. For --help and --version it prints the answer and ends
 * the program.
 */
static enum status parse(int argc, char **argv, struct options *options)
{
	static const struct option names[] = {
		{ "once", no_argument, NULL, '1' },
		{ "json", no_argument, NULL, 'j' },
		{ "metrics", no_argument, NULL, 'm' },
		{ "interval", required_argument, NULL, 'i' },
		{ "watch", required_argument, NULL, 'w' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	bool *given = options->given;
	uint64_t pid;
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "1jmi:w:hV", names, NULL)) != -1) {
		if (option == '?')
			return misused("there is no such option, or its value is missing", NULL);
		if (option == 'h' || option == 'V') {
			(void)console_answer(option == 'h' ? "-h" : "-V");
			exit(console_end(GOOD, REFUSED));
		}
		given[option] = true;
		if (parse_value(option, optarg, options) != GOOD)
			return WRONG_USE;
	}
	given['1'] |= given['m'];
	if (given['j'] && given['m'])
		return misused("--json and --metrics exclude each other", NULL);
	if (given['w'] && (given['1'] || given['i']))
		return misused(
			"--watch has no reading that --once, --metrics or --interval could be of",
			NULL);
	if (argc == 1)
		return GOOD;
	if (argc - optind != 1)
		return misused("exactly one PID must be given", NULL);
	if (!console_number(argv[optind], &pid) || pid < 1 || pid > INT_MAX)
		return misused("PID must be a number, the id of a process", NULL);
	options->pid = (pid_t)pid;
	return GOOD;
}

static void print_page(const struct watch *watch, enum view view, unsigned index)
{
	struct page page = { .columns = 80 };

	page_fill(&page, watch, view, index);
	for (unsigned line = 0; line < page.count; line++)
		puts(page.lines[line]);
}

static void print_pages(const struct watch *watch)
{
	if (watch->count > 1) {
		print_page(watch, VIEW_OVERVIEW, 0);
		puts("");
	}
	for (unsigned i = 0; i < watch->count; i++) {
		print_page(watch, VIEW_ONE, i);
		puts("");
	}
	print_page(watch, VIEW_WHO, 0);
}

static int print_reading(const struct watch *watch, const struct options *options)
{
	int result = 0;

	if (options->given['m'])
		result = metrics_print(watch);
	else if (options->given['j'])
		json_print(watch);
	else
		print_pages(watch);
	return result == 0 && fflush(stdout) == 0 ? 0 : complain(strerror(errno));
}

/*
 * Prints one reading if --once was given. Otherwise prints one in each interval, until a signal
 * arrives or an error occurs.
 */
static int print(struct watch *watch, const struct options *options)
{
	const struct timespec pause = timespec_of((uint64_t)(options->interval_s * 1e9));
	bool once = options->given['1'], want = !once || !options->given['i'];

	while (!stopped) {
		if (want && print_reading(watch, options) < 0)
			return -1;
		if (want && once)
			break;
		want = true;
		(void)nanosleep(&pause, NULL);
		if (!stopped && watch_read(watch) < 0)
			return -1;
	}
	return 0;
}

static int show(struct watch *watch, const struct options *options)
{
	if (options->given['w'])
		return stalls_run(watch, options->watch_ns, options->given['j'], &stopped) == 0
		               ? 0
		               : complain(strerror(errno));
	if (options->given['1'] || options->given['j'])
		return print(watch, options);
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return complain("this is no terminal: use --once or --json");
	if (screen_run(watch, (uint64_t)(options->interval_s * 1e9), &stopped) == 0)
		return 0;
	if (watch->target.refusal[0] == 0)
		return complain(
			"the terminal in TERM is not known: use another TERM, --once or --json");
	return -1;
}

static int list(void)
{
	DIR *proc = opendir("/proc");
	struct target target;
	struct dirent *entry;
	unsigned count = 0, loops;

	while (proc && (entry = readdir(proc))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		if (target_open(&target, (pid_t)atoi(entry->d_name)) == 0) {
			loops = 0;
			for (unsigned i = 0; i < target.hub_count; i++)
				loops += is_loop(&target.hubs[i].about);
			if (count++ == 0)
				(void)printf("%7s %-15s %5s %5s\n", "PID", "COMMAND", "HUBS",
				             "LOOPS");
			(void)printf("%7d %-15s %5u %5u\n", (int)target.pid, target.command,
			             target.hub_count - loops, loops);
		}
		target_close(&target);
	}
	if (!proc)
		return complain("/proc cannot be read");
	(void)closedir(proc);
	if (count == 0)
		return complain("there is no process to watch: the programs must open their hubs"
		                " with TIMERHUB_OBSERVABLE, or you lack the right to look at them");
	return 0;
}

int main(int argc, char **argv)
{
	struct options options = { .interval_s = 1 };
	/* There is no SA_RESTART, so a signal also ends the pause between two readings. */
	const struct sigaction action = { .sa_handler = stop };
	static struct watch watch;
	int result;

	console_begin();
	if (parse(argc, argv, &options) != GOOD)
		return WRONG_USE;
	if (options.pid == 0)
		return console_end(list() < 0 ? REFUSED : GOOD, REFUSED);
	(void)setlocale(LC_CTYPE, "");
	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
	(void)sigaction(SIGHUP, &action, NULL);
	result = watch_open(&watch, options.pid);
	if (result == 0)
		result = show(&watch, &options);
	if (result < 0 && watch.target.refusal[0] != 0)
		(void)complain(watch.target.refusal);
	function_names_close(watch.names);
	target_close(&watch.target);
	return result < 0 ? REFUSED : 0;
}
