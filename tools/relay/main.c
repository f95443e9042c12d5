/* SPDX-License-Identifier: MIT */
/*
 * timerhub-relay: the alarm clock of delayed tasks in Redis as a daemon, and commands that look
 * into a queue and change it. Each command is one call of a function of timerhub-relay(5). Tested
 * by tests/relay/tool_test.py.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <timerhub_relay.h>

#include <greet.h>

#include "tool.h"

#define STEP_NS UINT64_C(5000000000)
#define ALL_KEYS "due task ready dead past state seats seen"
#define COUNT_MAX 1000u
#define DATA_MAX ((size_t)1 << 20)

static const char usage[] =
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
	"  load                         load the functions into the server\n"
	"options:\n"
	"  --redis URL                  the server, without a password; else $REDIS_URL, else\n"
	"                               redis://127.0.0.1\n"
	"  --json                       for programs\n"
	"  --replace                    put: a task that still waits gets this time and data\n"
	"  --horizon MS, --grace MS, --batch N   run: see timerhub_relay_open(3)\n";

enum status complain(const char *what, int error)
{
	(void)fprintf(stderr, "timerhub-relay: %s: %s\n", what, strerror(-error));
	return FAILED;
}

/* What the queue says that could not be done. */
static enum status refuse(const char *what, int error)
{
	static const struct {
		int error;
		const char *words;
	} reasons[] = {
		{ -ENOENT, "there is none" },
		{ -EEXIST, "it is there, or was finished just now" },
		{ -EAGAIN, "the queue is full" },
		{ -EBUSY, "a taker has it" },
		{ -EMSGSIZE, "too much data" },
		{ -ERANGE, "too far ahead" },
		{ -EINVAL, "a bad argument" },
		{ -EOPNOTSUPP, "a later version has written the queue" },
	};

	for (unsigned i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].error == error) {
			(void)fprintf(stderr, "timerhub-relay: %s: %s\n", what, reasons[i].words);
			return REFUSED;
		}
	(void)complain(what, error);
	return REFUSED;
}

static enum status misused(const char *what)
{
	(void)fprintf(stderr, "timerhub-relay: %s\n%s", what, usage);
	return WRONG_USE;
}

/* ---- arguments ---- */

/* A number without sign; false: it is none. */
static bool read_number(const char *text, uint64_t *ret_number)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret_number = strtoull(text, &end, 10);
	return *end == '\0' && errno == 0;
}

/* A time as the functions take it: microseconds and, for one since 1970, the flag a. */
static bool read_when(const char *text, char when[32], const char **ret_flags)
{
	static const struct {
		const char *unit;
		double us;
	} units[] = { { "us", 1 },   { "ms", 1e3 },   { "s", 1e6 },
		      { "m", 60e6 }, { "h", 3600e6 }, { "d", 86400e6 } };
	bool absolute = text[0] == '@';
	double number, factor = absolute ? 1e6 : 0;
	char *end;

	*ret_flags = absolute ? "a" : "";
	if (strcmp(text, "never") == 0) {
		(void)snprintf(when, 32, "never");
		return true;
	}
	text += absolute;
	if (*text < '0' || *text > '9')
		return false;
	number = strtod(text, &end);
	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]) && !absolute; i++)
		if (strcmp(end, units[i].unit) == 0)
			factor = units[i].us;
	if (factor <= 0 || (absolute && *end) || !(number * factor < 1e19))
		return false;
	(void)snprintf(when, 32, "%.0f", number * factor);
	return true;
}

/* ---- a call ---- */

/* A connection, and the names of a queue's keys. */
struct call {
	struct wire *wire;
	struct keys keys;
	const struct options *options;
};

static int open_call(struct call *call, const struct options *options, const char *queue)
{
	const char *redis = options->redis;
	struct address address;
	int result = keys_init(&call->keys, queue);

	call->options = options;
	if (result == 0)
		result = address_read(&address, &redis);
	if (result == 0 && redis)
		result = -EOPNOTSUPP;
	return result == 0 ? greet_open(&call->wire, &address, NULL, STEP_NS) : result;
}

static void add(struct call *call, const char *word)
{
	bytes_text(wire_output(call->wire), word);
}

static void begin(struct call *call, const char *function, const char *keys, unsigned arguments)
{
	keys_call(&call->keys, wire_output(call->wire), function, keys, arguments);
}

/* Ask, and let `print` have the reply. What the queue refuses is told, and is no failure. */
static enum status ask(struct call *call, const char *what,
                       void (*print)(const struct reply *reply, bool json))
{
	struct reply *reply;
	int result = greet_call(call->wire, &reply, STEP_NS);
	enum status status = GOOD;

	if (result < 0)
		return complain(what, result);
	result = reply_type(reply_at(reply, 0)) == REPLY_INTEGER ? (int)reply_integer_at(reply, 0)
	                                                         : 0;
	if (result < 0) {
		status = refuse(what, result);
	} else if (print) {
		print(reply, call->options->json);
	}
	reply_free(reply);
	return status;
}

/* ---- commands; `words` begin with the queue ---- */

static enum status do_create(struct call *call, char **words, int count)
{
	int status;

	status = greet_load(call->wire, STEP_NS);
	if (status < 0)
		return complain("load", status);
	begin(call, "create", "ready state", 2 * (unsigned)(count - 1));
	for (int i = 1; i < count; i++) {
		char *value = strchr(words[i], '=');

		if (!value)
			return misused("a setting is NAME=VALUE");
		*value++ = '\0';
		add(call, words[i]);
		add(call, value);
	}
	return ask(call, words[0], NULL);
}

static size_t read_input(char *data)
{
	return fread(data, 1, DATA_MAX + 1, stdin);
}

static enum status do_put(struct call *call, char **words, int count)
{
	static char input[DATA_MAX + 1];
	const char *data = count > 3 ? words[3] : "", *flags;
	size_t len = strlen(data);
	char when[32], both[3];

	if (!read_when(words[2], when, &flags))
		return misused("that is no time");
	if (strcmp(data, "-") == 0) {
		data = input;
		len = read_input(input);
	}
	(void)snprintf(both, sizeof(both), "%s%s", flags, call->options->replace ? "r" : "");
	begin(call, "put", "due task state seats past", 4);
	add(call, words[1]);
	add(call, when);
	add(call, both);
	bytes_word(wire_output(call->wire), data, len);
	return ask(call, words[1], NULL);
}

static enum status do_cancel(struct call *call, char **words, int count)
{
	(void)count;
	begin(call, "cancel", "due task ready state past", 1);
	add(call, words[1]);
	return ask(call, words[1], NULL);
}

static enum status do_move(struct call *call, char **words, int count)
{
	const char *flags;
	char when[32];

	(void)count;
	if (!read_when(words[2], when, &flags))
		return misused("that is no time");
	begin(call, "move", "due task ready state past seats", 3);
	add(call, words[1]);
	add(call, when);
	add(call, flags);
	return ask(call, words[1], NULL);
}

static enum status do_done(struct call *call, char **words, int count)
{
	(void)count;
	begin(call, "done", "due task ready state past", 1);
	add(call, words[1]);
	return ask(call, words[1], NULL);
}

static void print_peek(const struct reply *reply, bool json)
{
	static const char *const names[] = { "where", "due", "attempts", "put", "data", "entry" };

	print_rows(reply, 1, names, sizeof(names) / sizeof(names[0]), json);
}

static enum status do_peek(struct call *call, char **words, int count)
{
	(void)count;
	begin(call, "peek", "due task ready", 1);
	add(call, words[1]);
	return ask(call, words[1], print_peek);
}

static bool read_count(char **words, int count, uint64_t *ret_count)
{
	*ret_count = 20;
	return count < 2 ||
	       (read_number(words[1], ret_count) && *ret_count > 0 && *ret_count <= COUNT_MAX);
}

static void print_list(const struct reply *reply, bool json)
{
	static const char *const names[] = { "id", "due", "attempts", "put", "bytes" };

	print_rows(reply, 1, names, sizeof(names) / sizeof(names[0]), json);
}

static enum status do_list(struct call *call, char **words, int count)
{
	uint64_t most;

	if (!read_count(words, count, &most))
		return misused("a count is 1 to 1000");
	begin(call, "list", "due task", 2);
	add(call, "0");
	bytes_number(wire_output(call->wire), most);
	return ask(call, words[0], print_list);
}

static enum status do_dead(struct call *call, char **words, int count)
{
	char name[KEYS_NAME_BYTES];
	uint64_t most;

	if (!read_count(words, count, &most))
		return misused("a count is 1 to 1000");
	keys_name(&call->keys, name, "dead");
	bytes_command(wire_output(call->wire), 6);
	add(call, "XRANGE");
	add(call, name);
	add(call, "-");
	add(call, "+");
	add(call, "COUNT");
	bytes_number(wire_output(call->wire), most);
	return ask(call, words[0], print_entries);
}

static enum status do_revive(struct call *call, char **words, int count)
{
	(void)count;
	begin(call, "revive", "dead due task state seats past", 1);
	add(call, words[1]);
	return ask(call, words[1], NULL);
}

static void print_stat(const struct reply *reply, bool json)
{
	print_pairs(reply, 1, json);
}

static enum status do_stat(struct call *call, char **words, int count)
{
	(void)count;
	begin(call, "stat", ALL_KEYS, 0);
	return ask(call, words[0], print_stat);
}

static enum status do_check(struct call *call, char **words, int count)
{
	static const char *const keeps[] = {
		"unknown: the server does not show its configuration",
		"no persistence: if Redis is killed, all is lost",
		"RDB only: if Redis is killed, the facts since the last snapshot are undone: done "
		"and cancelled tasks come again",
		"AOF without appendfsync always: if Redis is killed, nothing is lost, or up to 2 s "
		"if a sync was slow; if its machine loses power, up to 2 s",
		"AOF, appendfsync always: if Redis is killed or its machine loses power, nothing "
		"is "
		"lost",
	};
	struct timerhub_relay_report report;
	int result = timerhub_relay_check(call->options->redis, words[0], &report);

	(void)count;
	if (result < 0)
		return complain(words[0], result);
	if (call->options->json) {
		(void)printf("{\"keeps\": %" PRIu32 ", \"replicas\": %" PRIu32
		             ", \"replicas_min\": %" PRIu32 ", \"evicts\": %" PRIu32
		             ", \"tasks\": %" PRIu64 ", \"placed\": %" PRIu64
		             ", \"round_trip_ns\": %" PRIu64 ", \"sound\": %s}\n",
		             report.keeps, report.replicas, report.replicas_min, report.evicts,
		             report.tasks, report.placed, report.round_trip_ns,
		             report.fault ? "false" : "true");
	} else {
		(void)printf("keeps: %s\n", keeps[report.keeps]);
		(void)printf("replicas: %" PRIu32 ", at least %" PRIu32 "; failover to one loses "
		             "a suffix of the facts\n",
		             report.replicas, report.replicas_min);
		(void)printf("tasks: %" PRIu64 "\n", report.tasks);
		(void)printf("round trip: %" PRIu64 " us; a grace of 4 times that, or more\n",
		             report.round_trip_ns / 1000);
		(void)printf("fault: %s\n", report.fault ? report.fault : "none");
	}
	return report.fault ? REFUSED : GOOD;
}

static enum status do_load(struct call *call, char **words, int count)
{
	int result = greet_load(call->wire, STEP_NS);

	(void)words;
	(void)count;
	return result < 0 ? complain("load", result) : GOOD;
}

static const struct {
	const char *name;
	int words_min, words_max; /* the queue included */
	enum status (*run)(struct call *call, char **words, int count);
} commands[] = {
	{ "create", 1, 1000, do_create }, { "set", 2, 1000, do_create },
	{ "put", 3, 4, do_put },          { "cancel", 2, 2, do_cancel },
	{ "move", 3, 3, do_move },        { "done", 2, 2, do_done },
	{ "peek", 2, 2, do_peek },        { "list", 1, 2, do_list },
	{ "dead", 1, 2, do_dead },        { "revive", 2, 2, do_revive },
	{ "stat", 1, 1, do_stat },        { "check", 1, 1, do_check },
	{ "load", 0, 0, do_load },
};

static enum status run_command(const struct options *options, char **words, int count)
{
	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct call call;
		enum status status;
		int result;

		if (strcmp(words[0], commands[i].name) != 0)
			continue;
		if (count - 1 < commands[i].words_min || count - 1 > commands[i].words_max)
			return misused("that is too little, or too much");
		result = open_call(&call, options, count > 1 ? words[1] : "any");
		if (result < 0)
			return complain(words[0], result);
		status = commands[i].run(&call, words + 1, count - 1);
		wire_close(call.wire);
		return status;
	}
	return misused("there is no such command");
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
		return read_number(value, &options->batch) && options->batch <= COUNT_MAX;
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

static enum status run(int argc, char **argv)
{
	struct options options = { .redis = NULL };
	int at = 1;

	for (; at < argc && argv[at][0] == '-'; at++) {
		if (strcmp(argv[at], "--help") == 0) {
			(void)fputs(usage, stdout);
			return GOOD;
		}
		if (strcmp(argv[at], "--json") == 0)
			options.json = true;
		else if (strcmp(argv[at], "--replace") == 0)
			options.replace = true;
		else if (at + 1 >= argc || !read_option(&options, argv[at], argv[at + 1]))
			return misused("that is no option, or its value is bad");
		else
			at++;
	}
	if (options.redis && has_password(options.redis))
		return misused("a password belongs into $REDIS_URL, not on the command line");
	if (!options.redis)
		options.redis = getenv("REDIS_URL");
	if (at >= argc)
		return misused("a command is wanted");
	if (strcmp(argv[at], "run") == 0) {
		if (at + 1 >= argc)
			return misused("run which queues?");
		return daemon_run(&options, argv + at + 1, argc - at - 1);
	}
	return run_command(&options, argv + at, argc - at);
}

int main(int argc, char **argv)
{
	return (int)run(argc, argv);
}
