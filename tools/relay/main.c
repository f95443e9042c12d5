/* SPDX-License-Identifier: MIT */
/*
 * timerhub-relay: the alarm clock of delayed tasks in Redis as a daemon, and commands that look
 * into a queue and change it. Tested by tests/relay/tool_test.py.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

#define BATCH_MAX 1000u

static const char usage[] = "usage: timerhub-relay [OPTION...] COMMAND [QUEUE [ARGUMENT...]]\n"
			    "       timerhub-relay --help tells commands and options\n";

static const char help[] =
	"usage: timerhub-relay [OPTION...] COMMAND\n"
	"  run QUEUE...                 be an alarm clock of these queues until SIGTERM\n"
	"  create QUEUE [NAME=VALUE...] make a queue; set: change its settings\n"
	"  put QUEUE ID WHEN [DATA]     put a task; WHEN: 90s, 500ms, 2m, 1h, 3d, never,\n"
	"                               @SECONDS since 1970; DATA -: standard input\n"
	"  cancel QUEUE ID\n"
	"  move QUEUE ID WHEN\n"
	"  done QUEUE ID\n"
	"  peek QUEUE ID                where a task is\n"
	"  list QUEUE [COUNT]           the tasks that are due next\n"
	"  dead QUEUE [COUNT]           tasks that have used up their attempts\n"
	"  revive QUEUE ENTRY           put one of them again\n"
	"  stat QUEUE                   what there is, in numbers\n"
	"  check QUEUE                  what the server keeps, and whether the keys agree\n"
	"  top QUEUE...                 watch queues and their relays\n"
	"  load                         load the functions into the server\n"
	"options:\n"
	"  --redis URL                  the server, without a password, or @FILE with the URL;\n"
	"                               else $REDIS_URL, else redis://127.0.0.1\n"
	"  --json                       for programs\n"
	"  --version, -V                the version\n"
	"  --replace                    put: a task that still waits gets this time and data\n"
	"  --repair                     check: mend what the keys disagree on\n"
	"  --interval MS, --count N     top: time between readings, how many\n"
	"  --horizon MS, --grace MS, --batch N   run: see timerhub_relay_open(3)\n";

enum status misused(const char *what, const char *word)
{
	(void)fprintf(stderr, "%stimerhub-relay: %s%s%s\n", usage, what, word ? " " : "",
	              word ? word : "");
	return WRONG_USE;
}

/* ---- commands ---- */

/* Which of the queue's servers are asked. */
enum where {
	BY_ID, /* the one that has the task */
	EACH,
	ANY, /* one after another, until one knows */
	OWN, /* the command connects by itself */
};

static const struct command {
	const char *name;
	int words_min, words_max; /* the queue included */
	enum where where;
	enum needs needs;
	enum status (*run)(struct call *call, char **words, int count);
} commands[] = {
	{ "create", 1, 1000, EACH, NEEDS_NOTHING, do_create },
	{ "set", 2, 1000, EACH, NEEDS_NOTHING, do_create },
	{ "put", 3, 4, BY_ID, NEEDS_FUNCTIONS, do_put },
	{ "cancel", 2, 2, BY_ID, NEEDS_QUEUE, do_cancel },
	{ "move", 3, 3, BY_ID, NEEDS_QUEUE, do_move },
	{ "done", 2, 2, BY_ID, NEEDS_QUEUE, do_done },
	{ "peek", 2, 2, BY_ID, NEEDS_QUEUE, do_peek },
	{ "list", 1, 2, EACH, NEEDS_QUEUE, do_list },
	{ "dead", 1, 2, EACH, NEEDS_QUEUE, do_dead },
	{ "revive", 2, 2, ANY, NEEDS_QUEUE, do_revive },
	{ "stat", 1, 1, EACH, NEEDS_QUEUE, do_stat },
	{ "check", 1, 1, OWN, NEEDS_QUEUE, do_check },
	{ "load", 0, 0, EACH, NEEDS_NOTHING, do_load },
};

static enum status run_at(const struct command *command, struct call *call, uint32_t shard,
                          char **words, int count)
{
	enum status status =
		reach(call, shard, command->needs, count > 0 ? words[0] : command->name);

	return status == GOOD ? command->run(call, words, count) : status;
}

static enum status worse(enum status a, enum status b)
{
	return a > b ? a : b;
}

/* Each server's answer, in the order of the addresses; as JSON: an array, if there are several. */
static enum status run_at_each(const struct command *command, struct call *call, char **words,
                               int count)
{
	bool json = call->options->json, several = call->shards > 1;
	enum status status = GOOD;

	for (uint32_t i = 0; i < call->shards; i++) {
		if (several && json)
			(void)printf(i == 0 ? "[" : ",");
		else if (several)
			(void)printf("server %u\n", i);
		status = worse(status, run_at(command, call, i, words, count));
	}
	if (several && json)
		(void)printf("]\n");
	return status;
}

static enum status run_at_any(const struct command *command, struct call *call, char **words,
                              int count)
{
	enum status status = REFUSED;

	for (uint32_t i = 0; i < call->shards && status == REFUSED; i++) {
		call->may_be_elsewhere = i + 1 < call->shards;
		status = run_at(command, call, i, words, count);
	}
	return status;
}

static enum status run_call(const struct command *command, struct call *call, char **words,
                            int count)
{
	switch (command->where) {
	case BY_ID:
		return run_at(command, call, keys_shard(words[1], call->shards), words, count);
	case EACH:
		return run_at_each(command, call, words, count);
	case ANY:
		return run_at_any(command, call, words, count);
	default:
		return command->run(call, words, count);
	}
}

static enum status run_command(const struct options *options, char **words, int count)
{
	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct call call = { .wire = NULL };
		enum status status;

		if (strcmp(words[0], commands[i].name) != 0)
			continue;
		if (count - 1 < commands[i].words_min || count - 1 > commands[i].words_max)
			return misused("too few words, or too many, for", words[0]);
		status = open_call(&call, options, count > 1 ? words[1] : "any");
		if (status == GOOD)
			status = run_call(&commands[i], &call, words + 1, count - 1);
		close_call(&call);
		return status;
	}
	return misused("there is no command", words[0]);
}

/* ---- options ---- */

static bool read_option(struct options *options, const char *name, const char *value)
{
	if (strcmp(name, "--redis") == 0)
		options->redis = value;
	else if (strcmp(name, "--horizon") == 0)
		return read_number(value, &options->horizon_ms) && options->horizon_ms < 600001;
	else if (strcmp(name, "--grace") == 0)
		return read_number(value, &options->grace_ms) && options->grace_ms < 10001;
	else if (strcmp(name, "--batch") == 0)
		return read_number(value, &options->batch) && options->batch <= BATCH_MAX;
	else if (strcmp(name, "--interval") == 0)
		return read_number(value, &options->interval_ms) && options->interval_ms < 3600001;
	else if (strcmp(name, "--count") == 0)
		return read_number(value, &options->count);
	else
		return false;
	return true;
}

/* A password on the command line is seen by every user of the machine. */
static bool has_password(const char *redis)
{
	const char *text = redis;
	struct address address;

	while (text)
		if (address_read(&address, &text) < 0)
			return false;
		else if (address.password[0])
			return true;
	return false;
}

/* The first line of a file that holds the URL; NULL, and it is told: the file has none. */
static const char *read_file(const char *path)
{
	static char line[1024];
	FILE *file = fopen(path, "re");
	const char *found = file ? fgets(line, sizeof(line), file) : NULL;

	if (!found)
		(void)fprintf(stderr, "timerhub-relay: %s: %s\n", path,
		              file ? "there is no address in it" : strerror(errno));
	if (file)
		(void)fclose(file);
	line[strcspn(line, "\n")] = '\0';
	return found;
}

static enum status run(int argc, char **argv)
{
	struct options options = { .redis = NULL };
	int at = 1;

	for (; at < argc && argv[at][0] == '-'; at++) {
		if (strcmp(argv[at], "--help") == 0) {
			(void)fputs(help, stdout);
			return GOOD;
		}
		if (strcmp(argv[at], "--version") == 0 || strcmp(argv[at], "-V") == 0) {
			(void)puts("timerhub-relay " TIMERHUB_RELAY_VERSION);
			return GOOD;
		}
		if (strcmp(argv[at], "--json") == 0)
			options.json = true;
		else if (strcmp(argv[at], "--replace") == 0)
			options.replace = true;
		else if (strcmp(argv[at], "--repair") == 0)
			options.repair = true;
		else if (at + 1 >= argc || !read_option(&options, argv[at], argv[at + 1]))
			return misused("that is no option, or its value is bad:", argv[at]);
		else
			at++;
	}
	if (options.redis && options.redis[0] == '@') {
		options.redis = read_file(options.redis + 1);
		if (!options.redis)
			return FAILED;
	} else if (options.redis && has_password(options.redis))
		return misused(
			"a password belongs into a file, or $REDIS_URL, not on the command line",
			NULL);
	if (!options.redis)
		options.redis = getenv("REDIS_URL");
	if (at >= argc)
		return misused("a command is wanted", NULL);
	if (strcmp(argv[at], "run") == 0 || strcmp(argv[at], "top") == 0) {
		if (at + 1 >= argc)
			return misused("queues are wanted by", argv[at]);
		return (argv[at][0] == 'r' ? daemon_run : top_run)(&options, argv + at + 1,
		                                                   argc - at - 1);
	}
	return run_command(&options, argv + at, argc - at);
}

int main(int argc, char **argv)
{
	return (int)run(argc, argv);
}
