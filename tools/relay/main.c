/* SPDX-License-Identifier: MIT */
/*
 * timerhub-relay has a daemon that serves queues of delayed tasks in Redis, and commands that print
 * and change a queue. Tested by tests/relay/tool_test.py.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <relay/url_file.h>
#include <when.h>

#include "tool.h"

#define BATCH_MAX 1000u

const char console_tool[] = "timerhub-relay";
const char console_help[] =
	"usage: timerhub-relay [OPTION...] COMMAND [QUEUE [ARGUMENT...]]\n"
	"  run QUEUE...                 serve the queues as a relay until SIGTERM\n"
	"  create QUEUE [NAME=VALUE...] make a queue; set: change a queue's settings\n"
	"  put QUEUE ID WHEN [DATA]     put a task; DATA -: standard input\n"
	"  move QUEUE ID WHEN           give a task another time\n"
	"  cancel|done|peek QUEUE ID    withdraw, acknowledge or print a task\n"
	"  list|parked QUEUE [COUNT]    list the next due tasks; list the parked tasks\n"
	"  revive QUEUE ENTRY           put the dead task of this ENTRY again\n"
	"  stat QUEUE                   print its numbers; --metrics: as OpenMetrics text\n"
	"  check QUEUE                  print Redis's durability, and whether keys agree\n"
	"  drain QUEUE                  wait until the queue has no task left\n"
	"  top QUEUE...                 watch queues and their relays\n"
	"  load [QUEUE]                 load the Redis functions into the queue's server\n"
	"WHEN is a delay (90s, 1.5h; us, ms, s, m, h, d), a date (2027-01-31T12:00:00Z),\n"
	"@SECONDS since 1970, or never.\n"
	"Options stand before QUEUE; --help, -h, --version and -V are also options:\n"
	"  --redis URL     the server, without a password, or @FILE with the URL; else\n"
	"                  $REDIS_URL, else redis://127.0.0.1\n"
	"  --json, --ns    print JSON; print times in nanoseconds, in place of dates\n"
	"  --replace       put: if the task waits already, replace its time and data\n"
	"  --repair        check: repair keys that disagree\n"
	"  --interval MS, --count N             top: make N readings, MS ms apart\n"
	"  --horizon MS, --grace MS, --batch N  run: see timerhub_relay_open(3)\n"
	"Exit status: 0 done; 1 refused, or a fault; 2 wrong use; 3 a server failed.\n";

/* ---- commands ---- */

/* The servers to which the tool sends a command. */
enum where {
	BY_ID, /* that of the task's id */
	EACH,
	ANY, /* one after the other, until a server has the task */
	OWN, /* the command's function connects */
};

static const struct command {
	const char *name;
	/* arguments, with the queue */
	int words_min, words_max;
	enum where where;
	enum needs needs;
	enum status (*run)(struct call *call, char **words, int count);
} commands[] = {
	{ "create", 1, 1000, EACH, NEEDS_NOTHING, do_create },
	{ "set", 2, 1000, EACH, NEEDS_KEYS, do_create },
	{ "put", 3, 4, BY_ID, NEEDS_FUNCTIONS, do_put },
	{ "cancel", 2, 2, BY_ID, NEEDS_QUEUE, do_cancel },
	{ "move", 3, 3, BY_ID, NEEDS_QUEUE, do_move },
	{ "done", 2, 2, BY_ID, NEEDS_QUEUE, do_done },
	{ "peek", 2, 2, BY_ID, NEEDS_QUEUE, do_peek },
	{ "list", 1, 2, EACH, NEEDS_QUEUE, do_list },
	{ "parked", 1, 2, EACH, NEEDS_QUEUE, do_dead },
	{ "dead", 1, 2, EACH, NEEDS_QUEUE, do_dead }, /* the older name of "parked" */
	{ "pause", 1, 1, EACH, NEEDS_QUEUE, do_pause },
	{ "resume", 1, 1, EACH, NEEDS_QUEUE, do_resume },
	{ "revive", 2, 2, ANY, NEEDS_QUEUE, do_revive },
	{ "stat", 1, 1, EACH, NEEDS_QUEUE, do_stat },
	{ "check", 1, 1, OWN, NEEDS_QUEUE, do_check },
	{ "drain", 1, 1, OWN, NEEDS_QUEUE, do_drain },
	{ "load", 0, 1, EACH, NEEDS_NOTHING, do_load },
};

/* With --metrics, stat asks all servers before it prints the first line. */
static const struct command metrics_command = {
	"stat", 1, 1, OWN, NEEDS_QUEUE, do_metrics,
};

static enum status run_at(const struct command *command, struct call *call, uint32_t shard,
                          char **words, int count)
{
	enum status status =
		reach(call, shard, command->needs, count > 0 ? words[0] : command->name);

	return status == GOOD ? command->run(call, words, count) : status;
}

/* With --json, several servers make one array. */
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

static enum status run_with(const struct command *command, const struct options *options,
                            char **words, int count)
{
	struct call call = { .wire = NULL };
	enum status status;

	if (count < command->words_min || count > command->words_max) {
		for (int i = 1; i < count; i++)
			if (strncmp(words[i], "--", 2) == 0)
				return misused(OPTION_BEHIND, words[i]);
		return misused("wrong number of arguments for", command->name);
	}
	status = open_call(&call, options, count > 0 ? words[0] : "any");
	/* In a cluster the functions are loaded where a queue is. */
	for (uint32_t i = 0; status == GOOD && count == 0 && i < call.shards; i++)
		if (call.addresses[i].cluster)
			status = misused("a cluster has the functions where a queue is: load QUEUE",
			                 NULL);
	if (status == GOOD)
		status = run_call(command, &call, words, count);
	close_call(&call);
	return status;
}

static enum status run_command(const struct options *options, const char *name, char **words,
                               int count)
{
	if (options->metrics && options->json)
		return misused("--metrics and --json exclude each other", NULL);
	if (options->metrics)
		return run_with(&metrics_command, options, words, count);
	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(name, commands[i].name) == 0)
			return run_with(&commands[i], options, words, count);
	return misused("there is no command named", name);
}

/* ---- options ---- */

static bool read_option(struct options *options, const char *name, const char *value)
{
	if (strcmp(name, "--redis") == 0)
		options->redis = value;
	else if (strcmp(name, "--horizon") == 0)
		return console_number(value, &options->horizon_ms) && options->horizon_ms < 600001;
	else if (strcmp(name, "--grace") == 0)
		return console_number(value, &options->grace_ms) && options->grace_ms < 10001;
	else if (strcmp(name, "--batch") == 0)
		return console_number(value, &options->batch) && options->batch <= BATCH_MAX;
	else if (strcmp(name, "--interval") == 0)
		return console_number(value, &options->interval_ms) &&
		       options->interval_ms < 3600001;
	else if (strcmp(name, "--count") == 0)
		return console_number(value, &options->count);
	else
		return false;
	return true;
}

/* Every user of the machine can see a command line. */
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

/* The list in a file; if there is none, prints why and returns NULL. */
static const char *read_file(const char *redis)
{
	static char *text;
	const char *list;
	int result = url_file_open(redis, &list, &text);

	if (result == 0)
		return list;
	(void)fprintf(stderr, "timerhub-relay: %s: %s\n", redis + 1,
	              result == -EINVAL ? "the file is empty, but its first line must be a URL"
	                                : strerror(-result));
	return NULL;
}

static bool *find_flag(struct options *options, const char *name)
{
	const struct {
		const char *name;
		bool *flag;
	} flags[] = {
		{ "--json", &options->json },     { "--metrics", &options->metrics },
		{ "--ns", &when_in_ns },          { "--replace", &options->replace },
		{ "--repair", &options->repair },
	};

	for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (strcmp(name, flags[i].name) == 0)
			return flags[i].flag;
	return NULL;
}

/* From words[*at] up to the first word without dashes, or up to "--". */
static enum status read_options(struct options *options, char **words, int *at)
{
	for (; words[*at] && words[*at][0] == '-'; (*at)++) {
		char *name = words[*at], *value = strchr(name, '=');
		bool *flag = find_flag(options, name);

		if (console_answer(name)) {
			options->is_answered = true;
			return GOOD;
		}
		if (strncmp(name, "--", 2) != 0)
			return GOOD;
		if (name[2] == '\0') {
			(*at)++;
			return GOOD;
		}
		if (value)
			*value++ = '\0'; /* also keeps a password out of the message */
		if (flag)
			*flag = true;
		else if (value && read_option(options, name, value))
			continue;
		else if (!value && words[*at + 1] && read_option(options, name, words[*at + 1]))
			(*at)++;
		else
			return misused("there is no such option, or its value is not valid:", name);
	}
	return GOOD;
}

/* Whether no option is given that another command needs. */
static enum status check_options(const struct options *options, const char *command)
{
	const struct {
		bool given;
		const char *option, *command;
	} own[] = {
		{ options->metrics, "--metrics", "stat" },
		{ options->replace, "--replace", "put" },
		{ options->repair, "--repair", "check" },
		{ options->count > 0, "--count", "top" },
		{ options->interval_ms > 0, "--interval", "top" },
		{ options->horizon_ms > 0, "--horizon", "run" },
		{ options->grace_ms > 0, "--grace", "run" },
		{ options->batch > 0, "--batch", "run" },
	};
	char words[64];

	for (unsigned i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		if (!own[i].given || strcmp(own[i].command, command) == 0)
			continue;
		(void)snprintf(words, sizeof(words), "%s works only with %s, not with",
		               own[i].option, own[i].command);
		return misused(words, command);
	}
	return GOOD;
}

static enum status find_redis(struct options *options)
{
	const bool is_option = options->redis != NULL;

	if (!is_option)
		options->redis = getenv("REDIS_URL");
	options->given = options->redis;
	if (options->redis && options->redis[0] == '@')
		options->redis = read_file(options->redis);
	else if (is_option && has_password(options->redis))
		return misused("--redis must not have a password: use @FILE or $REDIS_URL", NULL);
	return options->redis || !options->given ? GOOD : FAILED;
}

static enum status run(char **words, int count)
{
	struct options options = { .redis = NULL };
	enum status status;
	const char *command;
	int at = 0;

	status = read_options(&options, words, &at);
	command = words[at];
	if (status == GOOD && options.is_answered)
		return GOOD;
	if (status == GOOD && !command)
		return misused("there is no COMMAND among the arguments", NULL);
	at++;
	if (status == GOOD)
		status = read_options(&options, words, &at);
	if (status == GOOD && options.is_answered)
		return GOOD;
	if (status == GOOD)
		status = check_options(&options, command);
	if (status == GOOD)
		status = find_redis(&options);
	if (status != GOOD)
		return status;
	if (strcmp(command, "run") != 0 && strcmp(command, "top") != 0)
		return run_command(&options, command, words + at, count - at);
	if (at == count)
		return misused("at least one QUEUE must follow", command);
	return (command[0] == 'r' ? daemon_run : top_run)(&options, words + at, count - at);
}

int main(int argc, char **argv)
{
	console_begin();
	return console_end(run(argv + 1, argc - 1), FAILED);
}
