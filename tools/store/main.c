/* SPDX-License-Identifier: MIT */
/*
 * The program timerhub-store, by which users list and change the tasks in a store's database. The
 * manual page is man/timerhub-store.1. Tested by tests/store/tool_test.py.
 */
#include <stdio.h>
#include <string.h>

#include <when.h>

#include "tool.h"

struct options options;

const char console_tool[] = "timerhub-store";
const char console_help[] =
	"usage: timerhub-store [OPTION...] COMMAND FILE [ARGUMENT...]\n"
	"  put FILE WHEN [DATA]    put a task and print its id; DATA -: standard input\n"
	"  list FILE [COUNT]       list the tasks, the first due one first\n"
	"  show FILE TASK          print a task's data\n"
	"  cancel FILE TASK        cancel a task that no worker has\n"
	"  move FILE TASK WHEN     give a task another time\n"
	"  revive FILE TASK        let a parked task be due now\n"
	"  stat FILE               print how many tasks wait, are due, taken and parked\n"
	"  check FILE              look for damage in the database, and in its tasks\n"
	"FILE is the SQLite database. TASK is the id of a task, or =KEY.\n"
	"WHEN is a delay (90s, 1.5h; us, ms, s, m, h, d), a date (2027-01-31T12:00:00Z),\n"
	"@SECONDS since 1970, or never.\n"
	"Options, anywhere; --help, -h, --version and -V are also options:\n"
	"  --queue NAME    the queue; else the one without a name, or in list, stat all\n"
	"  --json, --ns    print JSON; print times in nanoseconds, in place of dates\n"
	"  --metrics       stat: print OpenMetrics text\n"
	"  --key KEY       put: name the task, so that there is only one of that name\n"
	"  --replace       put: if a task has the key, replace its time and data\n"
	"  --interval T    put: let the task be due again every T (90s, 1.5h)\n"
	"Exit status: 0 done; 1 refused, or damage found; 2 wrong use; 3 the database\n"
	"could not be read or written.\n";

enum status tool_refuse(const char *what, const char *why)
{
	(void)fprintf(stderr, "timerhub-store: %s: %s\n", what, why);
	return REFUSED;
}

enum status tool_complain(const char *what, int error)
{
	(void)tool_refuse(what, strerror(-error));
	return FAILED;
}

static const struct command {
	const char *name;
	int words_min, words_max; /* how many arguments it takes, with the file */
	enum status (*run)(char **arguments);
} commands[] = {
	{ "put", 2, 3, tool_put },   { "list", 1, 2, tool_list },
	{ "show", 2, 2, tool_show }, { "cancel", 2, 2, tool_cancel },
	{ "move", 3, 3, tool_move }, { "revive", 2, 2, tool_move },
	{ "stat", 1, 1, tool_stat }, { "check", 1, 1, tool_check },
};

static enum status command_line(char **words, int count)
{
	if (count == 0)
		return misused("the command is missing", NULL);
	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const struct command *command = &commands[i];

		if (strcmp(words[0], command->name) != 0)
			continue;
		if (count - 1 < command->words_min || count - 1 > command->words_max)
			return misused("wrong number of arguments for", words[0]);
		return command->run(words + 1);
	}
	return misused("there is no command named", words[0]);
}

int main(int argc, char **argv)
{
	const char *interval = NULL;
	struct console_option known[] = {
		{ "--queue", .text = &options.queue },
		{ "--key", .text = &options.key },
		{ "--interval", .text = &interval },
		{ "--json", .flag = &options.json },
		{ "--metrics", .flag = &options.metrics },
		{ "--replace", .flag = &options.replace },
		{ "--ns", .flag = &when_in_ns },
	};
	struct when when = { .ns = 0 };
	enum status status;
	int words = 0, at = 1;

	console_begin();
	while ((status = console_options(known, sizeof(known) / sizeof(known[0]), argv, &at)) ==
	               GOOD &&
	       at < argc)
		argv[words++] = argv[at++];
	argv[words] = NULL;
	if (interval && (!when_read(interval, &when) || when.is_absolute || when.ns == 0 ||
	                 when.ns == WHEN_NEVER))
		return (int)misused("the value is wrong for", "--interval");
	options.interval_ns = when.ns;
	return console_end(status == GOOD ? command_line(argv, words) : status, FAILED);
}
