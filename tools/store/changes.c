/* SPDX-License-Identifier: MIT */
/* The commands that change a task. They use the library, like any other program. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <when.h>

#include "tool.h"

bool tool_read_task(const char *text, uint64_t *ret_id, const char **ret_key)
{
	if (*text != '=' || text[1] == '\0')
		return console_number(text, ret_id);
	*ret_key = text + 1;
	return true;
}

/* Says why a change was refused. What the database is to blame for has another exit status. */
static enum status refused(const char *task, int error)
{
	static const struct {
		int error;
		const char *why;
	} reasons[] = {
		{ -ENOENT, "no such task in this queue" },
		{ -EBUSY, "a worker has the task" },
		{ -EEXIST, "a live task has this key" },
		{ -ERANGE, "the time is before 2001 or after 2286" },
		{ -EMSGSIZE, "more than 1 MiB of data" },
		{ -EINVAL, "no key of 1 to 255 bytes" },
	};

	for (unsigned i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].error == error)
			return tool_refuse(task, reasons[i].why);
	return tool_complain(task, error);
}

/* Opens the store in a file. Unless `make` is true, the file must be there already. */
static int open_store(struct timerhub_store **ret_store, const char *path, bool make)
{
	struct timerhub_store_config config = { .size = sizeof(config), .queue = options.queue };

	if (!make && access(path, F_OK) < 0)
		return -errno;
	return timerhub_store_open(ret_store, path, &config);
}

static enum status put(const char *path, struct timerhub_store_put *what)
{
	struct timerhub_store *store;
	uint64_t id = 0;
	int result = open_store(&store, path, true);

	if (result < 0)
		return tool_complain(path, result);
	result = timerhub_store_put(store, what, &id);
	timerhub_store_close(store);
	if (result < 0)
		return refused(what->key ? what->key : path, result);
	(void)printf(options.json ? "{\"id\": %" PRIu64 "}\n" : "%" PRIu64 "\n", id);
	return GOOD;
}

enum status tool_put(char **arguments)
{
	struct timerhub_store_put what = {
		.size = sizeof(what),
		.flags = options.replace ? TIMERHUB_STORE_REPLACE : 0,
		.interval_ns = options.interval_ns,
		.key = options.key,
		.data = arguments[2] ? arguments[2] : "",
	};
	struct when when;

	if (!when_read(arguments[1], &when))
		return misused(WHEN_WRONG, arguments[1]);
	if (options.replace && !options.key)
		return misused("--replace needs --key", NULL);
	what.when_ns = when.ns;
	what.flags |= when.is_absolute ? TIMERHUB_ABSOLUTE : 0;
	what.data_len = strlen(what.data);
	if (arguments[2] && strcmp(arguments[2], "-") == 0) {
		what.data = console_input(&what.data_len);
		if (!what.data)
			return tool_complain("standard input", -errno);
	}
	return put(arguments[0], &what);
}

/* Makes one change of a task that the user has named. */
static enum status change(char **arguments, struct timerhub_store_change *what)
{
	struct timerhub_store *store;
	int result;

	if (!tool_read_task(arguments[1], &what->id, &what->key))
		return misused("TASK must be the id of a task, or =KEY, not", arguments[1]);
	result = open_store(&store, arguments[0], false);
	if (result < 0)
		return tool_complain(arguments[0], result);
	result = timerhub_store_commit(store, what, 1);
	timerhub_store_close(store);
	return result < 0 ? refused(arguments[1], result) : GOOD;
}

enum status tool_cancel(char **arguments)
{
	struct timerhub_store_change what = { .op = TIMERHUB_STORE_CANCEL };

	return change(arguments, &what);
}

/* A revive has no time: the task becomes due now. */
enum status tool_move(char **arguments)
{
	struct timerhub_store_change what = { .op = TIMERHUB_STORE_MOVE };
	struct when when = { .ns = 0 };

	if (arguments[2] && !when_read(arguments[2], &when))
		return misused(WHEN_WRONG, arguments[2]);
	what.when_ns = when.ns;
	what.flags = when.is_absolute ? TIMERHUB_ABSOLUTE : 0;
	return change(arguments, &what);
}
