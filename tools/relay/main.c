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

struct options options;

const char console_tool[] = "timerhub-relay";
const char console_help[] =
	"usage: timerhub-relay [OPTION...] COMMAND [QUEUE [ARGUMENT...]]\n"
	"  run QUEUE...                 serve the queues as a relay until SIGTERM\n"
	"  create|set QUEUE [NAME=N...] make a queue; change a queue's settings\n"
	"  put QUEUE ID WHEN [DATA]     put a task; DATA -: standard input\n"
	"  move QUEUE ID WHEN           give a task another time\n"
	"  cancel|done|peek QUEUE ID    withdraw, acknowledge or print a task\n"
	"  list|parked QUEUE [COUNT]    list the next due tasks; list the parked tasks\n"
	"  revive QUEUE ENTRY           put the parked task of this ENTRY again\n"
	"  stat QUEUE                   print its numbers; --metrics: as OpenMetrics text\n"
	"  check QUEUE                  print Redis's durability, and whether keys agree\n"
	"  pause|resume|drain QUEUE     hand out no tasks; do so again; wait for the last\n"
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
	enum status (*run)(struct call *call, char **words);
	/* if `run` is NULL: a Redis function, which gets the words behind the queue; its keys */
	const char *function, *keys;
	bool is_change;
	void (*print)(const struct reply *reply);
} commands[] = {
	{ "create", 1, 1000, EACH, NEEDS_NOTHING, .run = do_create },
	{ "set", 2, 1000, EACH, NEEDS_KEYS, .run = do_create },
	{ "put", 3, 4, BY_ID, NEEDS_FUNCTIONS, .run = do_put },
	{ "cancel", 2, 2, BY_ID, NEEDS_QUEUE, .function = "cancel",
	  .keys = "due task ready state past", .is_change = true },
	{ "move", 3, 3, BY_ID, NEEDS_QUEUE, .run = do_move },
	{ "done", 2, 2, BY_ID, NEEDS_QUEUE, .run = do_done },
	{ "peek", 2, 2, BY_ID, NEEDS_QUEUE, .function = "peek", .keys = "due task ready",
	  .print = print_peek },
	{ "list", 1, 2, EACH, NEEDS_QUEUE, .run = do_list },
	{ "parked", 1, 2, EACH, NEEDS_QUEUE, .run = do_dead },
	{ "dead", 1, 2, EACH, NEEDS_QUEUE, .run = do_dead }, /* the older name of "parked" */
	{ "pause", 1, 1, EACH, NEEDS_QUEUE, .run = do_pause },
	{ "resume", 1, 1, EACH, NEEDS_QUEUE, .function = "resume", .keys = "state seats",
	  .is_change = true },
	{ "revive", 2, 2, ANY, NEEDS_QUEUE, .function = "revive",
	  .keys = "dead due task state seats past", .is_change = true },
	{ "stat", 1, 1, EACH, NEEDS_QUEUE, .function = "stat", .keys = STAT_KEYS,
	  .print = print_stat },
	{ "check", 1, 1, OWN, NEEDS_QUEUE, .run = do_check },
	{ "drain", 1, 1, OWN, NEEDS_QUEUE, .run = do_drain },
	{ "load", 0, 1, EACH, NEEDS_NOTHING, .run = do_load },
};

/* With --metrics, stat asks all servers before it prints the first line. */
static const struct command metrics_command = {
	"stat", 1, 1, OWN, NEEDS_QUEUE, .run = do_metrics,
};

static enum status run_function(const struct command *command, struct call *call, char **words)
{
	const char *what = words[1] ? words[1] : words[0];
	const char *const *arguments = (const char *const *)words + 1;

	if (command->is_change)
		return change(call, what, command->function, command->keys, arguments, NULL, 0);
	begin(call, command->function, command->keys, arguments);
	return ask(call, what, command->print);
}

static enum status run_at(const struct command *command, struct call *call, uint32_t shard,
                          char **words)
{
	enum status status =
		reach(call, shard, command->needs, words[0] ? words[0] : command->name);

	if (status != GOOD)
		return status;
	return (command->run ? command->run(call, words) : run_function(command, call, words));
}

/* With --json, several servers make one array. */
static enum status run_at_each(const struct command *command, struct call *call, char **words)
{
	bool json = options.json, several = call->shards > 1;
	enum status status = GOOD;

	for (uint32_t i = 0; i < call->shards; i++) {
		if (several && json)
			(void)printf(i == 0 ? "[" : ",");
		else if (several)
			(void)printf("server %u\n", i);
		status = worse(status, run_at(command, call, i, words));
	}
	if (several && json)
		(void)printf("]\n");
	return status;
}

static enum status run_at_any(const struct command *command, struct call *call, char **words)
{
	enum status status = REFUSED;

	begin_array(call);
	for (uint32_t i = 0; i < call->shards && status == REFUSED; i++) {
		call->may_be_elsewhere = i + 1 < call->shards;
		status = run_at(command, call, i, words);
	}
	end_array();
	return status;
}

static enum status run_call(const struct command *command, struct call *call, char **words)
{
	switch (command->where) {
	case BY_ID:
		return run_at(command, call, keys_shard(words[1], call->shards), words);
	case EACH:
		return run_at_each(command, call, words);
	case ANY:
		return run_at_any(command, call, words);
	default:
		return command->run(call, words);
	}
}

/* ---- options ---- */

static struct console_option known[] = {
	{ "--redis", .text = &options.redis },
	{ "--json", .flag = &options.json },
	{ "--ns", .flag = &when_in_ns },
	{ "--metrics", .flag = &options.metrics, .command = "stat" },
	{ "--replace", .flag = &options.replace, .command = "put" },
	{ "--repair", .flag = &options.repair, .command = "check" },
	{ "--count", .number = &options.count, .max = UINT64_MAX, .command = "top" },
	{ "--interval", .number = &options.interval_ms, .max = 3600000, .command = "top" },
	{ "--horizon", .number = &options.horizon_ms, .max = 600000, .command = "run" },
	{ "--grace", .number = &options.grace_ms, .max = 10000, .command = "run" },
	{ "--batch", .number = &options.batch, .max = 1000, .command = "run" },
};
enum { KNOWN = sizeof(known) / sizeof(known[0]) };

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

/* Returns the list of servers in the file "@PATH". If it cannot, prints why and returns NULL. */
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

/* Refuses options that only another command has. Returns GOOD if none of them is given. */
static enum status check_options(const char *command)
{
	char words[64];

	for (unsigned i = 0; i < KNOWN; i++) {
		if (!known[i].is_given || !known[i].command ||
		    strcmp(known[i].command, command) == 0)
			continue;
		(void)snprintf(words, sizeof(words), "%s works only with %s, not with",
		               known[i].name, known[i].command);
		return misused(words, command);
	}
	return GOOD;
}

static enum status find_redis(void)
{
	const bool is_option = options.redis != NULL;

	if (!is_option)
		options.redis = getenv("REDIS_URL");
	options.given = options.redis;
	if (options.redis && options.redis[0] == '@')
		options.redis = read_file(options.redis);
	else if (is_option && has_password(options.redis))
		return misused("--redis must not have a password: use @FILE or $REDIS_URL", NULL);
	return options.redis || !options.given ? GOOD : FAILED;
}

static enum status run_with(const struct command *command, char **words, int count)
{
	struct call call = { .wire = NULL };
	enum status status;

	if (count < command->words_min || count > command->words_max) {
		for (int i = 1; i < count; i++)
			if (strncmp(words[i], "--", 2) == 0)
				return misused(OPTION_BEHIND, words[i]);
		return misused("wrong number of arguments for", command->name);
	}
	status = open_call(&call, count > 0 ? words[0] : "any");
	/* In a cluster the functions are loaded where a queue is. */
	for (uint32_t i = 0; status == GOOD && count == 0 && i < call.shards; i++)
		if (call.addresses[i].cluster)
			status = misused("a cluster has the functions where a queue is: load QUEUE",
			                 NULL);
	if (status == GOOD)
		status = run_call(command, &call, words);
	close_call(&call);
	return status;
}

static enum status run_command(const char *name, char **words, int count)
{
	if (options.metrics && options.json)
		return misused("--metrics and --json exclude each other", NULL);
	if (options.metrics)
		return run_with(&metrics_command, words, count);
	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(name, commands[i].name) == 0)
			return run_with(&commands[i], words, count);
	return misused("there is no command named", name);
}

static enum status run(char **words, int count)
{
	enum status status;
	const char *command;
	int at = 0;

	status = console_options(known, KNOWN, words, &at);
	command = words[at];
	if (status == GOOD && !command)
		return misused("there is no COMMAND among the arguments", NULL);
	at++;
	if (status == GOOD)
		status = console_options(known, KNOWN, words, &at);
	if (status == GOOD)
		status = check_options(command);
	if (status == GOOD)
		status = find_redis();
	if (status != GOOD)
		return status;
	if (strcmp(command, "run") != 0 && strcmp(command, "top") != 0)
		return run_command(command, words + at, count - at);
	if (at == count)
		return misused("at least one QUEUE must follow", command);
	return (command[0] == 'r' ? daemon_run : top_run)(words + at, count - at);
}

int main(int argc, char **argv)
{
	console_begin();
	return console_end(run(argv + 1, argc - 1), FAILED);
}
