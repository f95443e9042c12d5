/* SPDX-License-Identifier: MIT */
/* See task_commands.h. Tested by tests/journal/tool_test.py. */
#include "task_commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <timerhub_journal.h>

#include <journal/backup.h>
#include <journal/replay.h>
#include <when.h>

enum status tool_complain(const char *what, int error)
{
	(void)fprintf(stderr, "timerhub-journal: %s: %s\n", what, strerror(-error));
	return FAILED;
}

/* Of a whole journal. */
static enum status complain_of_journal(const char *dir, int error)
{
	if (error != -EBADMSG)
		return tool_complain(dir, error);
	(void)fprintf(stderr, "timerhub-journal: %s is damaged; see check\n", dir);
	return DAMAGED;
}

/* ---- keys ---- */

void tool_print_key(const char *before, const void *key, size_t key_len)
{
	const unsigned char *bytes = key;

	(void)printf("%s", before);
	for (size_t i = 0; i < key_len; i++)
		if (bytes[i] > ' ' && bytes[i] < 127 && bytes[i] != '\\')
			(void)putchar(bytes[i]);
		else
			(void)printf("\\x%02x", bytes[i]);
}

static int hex_digit(char character)
{
	const char *digits = "0123456789abcdef", *found = strchr(digits, character);

	return found && character != '\0' ? (int)(found - digits) : -1;
}

/* The reverse of tool_print_key(). Returns the key's length, or 0 if the text is not a key. */
static size_t read_key(const char *text, unsigned char *key)
{
	size_t length = 0;

	for (; *text != '\0'; length++) {
		int high, low;

		if (length == TIMERHUB_JOURNAL_KEY_MAX)
			return 0;
		if (*text != '\\') {
			key[length] = (unsigned char)*text++;
			continue;
		}
		high = text[1] == 'x' ? hex_digit(text[2]) : -1;
		low = high >= 0 ? hex_digit(text[3]) : -1;
		if (low < 0)
			return 0;
		key[length] = (unsigned char)(high * 16 + low);
		text += 4;
	}
	return length;
}

struct meant {
	uint64_t id;
	size_t key_len; /* 0: by its id */
	unsigned char key[TIMERHUB_JOURNAL_KEY_MAX];
};

static bool read_meant(const char *text, struct meant *ret_meant)
{
	*ret_meant = (struct meant){ .id = 0 };
	if (*text == '=') {
		ret_meant->key_len = read_key(text + 1, ret_meant->key);
		return ret_meant->key_len > 0;
	}
	return console_number(text, &ret_meant->id);
}

static enum status no_such_task(const char *task)
{
	(void)fprintf(stderr, "timerhub-journal: %s: no such task\n", task);
	return REFUSED;
}

/* ---- list, show ---- */

struct listing {
	const struct task **tasks;
	size_t count;
};

static void note_task(void *context, struct task *task)
{
	struct listing *listing = context;

	listing->tasks[listing->count++] = task;
}

static int compare_tasks(const void *a, const void *b)
{
	const struct task *left = *(const struct task *const *)a;
	const struct task *right = *(const struct task *const *)b;
	bool left_parked = left->state == TASK_PARKED;

	if (left_parked != (right->state == TASK_PARKED))
		return left_parked ? 1 : -1;
	if (left->due_ns != right->due_ns)
		return left->due_ns < right->due_ns ? -1 : 1;
	return left->id < right->id ? -1 : left->id > right->id;
}

static void print_task(const struct task *task)
{
	(void)printf("%" PRIu64, task->id);
	when_print("due", task->due_ns);
	if (task->state == TASK_PARKED)
		(void)printf(" parked %" PRIu32, task->reason);
	if (task->interval_ns > 0)
		when_print_delay("interval", task->interval_ns);
	(void)printf(" attempts %" PRIu32 " data %" PRIu32, task->attempts, task->data_len);
	if (task->key_len > 0)
		tool_print_key(" =", task_key(task), task->key_len);
	(void)printf("\n");
}

/* Without the lock, so also while a process has the journal open. Returns an exit status. */
static enum status look(struct disk *disk, const char *dir, struct replay *replay)
{
	int result;

	replay_init(replay, disk, 0);
	result = replay_run(replay, REPLAY_VERIFY);
	console_work_end();
	return result < 0 ? complain_of_journal(dir, result) : GOOD;
}

enum status tool_list(struct disk *disk, char **arguments)
{
	struct listing listing = { .count = 0 };
	struct replay replay;
	enum status status = look(disk, arguments[0], &replay);

	if (status == GOOD) {
		listing.tasks = calloc(replay.tasks.count + (size_t)1, sizeof(struct task *));
		if (!listing.tasks)
			status = tool_complain(arguments[0], -ENOMEM);
	}
	if (status == GOOD) {
		tasks_each(&replay.tasks, note_task, &listing);
		qsort(listing.tasks, listing.count, sizeof(struct task *), compare_tasks);
	}
	for (size_t i = 0; i < listing.count; i++)
		print_task(listing.tasks[i]);
	free(listing.tasks);
	replay_fini(&replay);
	return status;
}

enum status tool_show(struct disk *disk, char **arguments)
{
	const struct task *task;
	struct replay replay;
	struct meant meant;
	enum status status;

	if (!read_meant(arguments[1], &meant))
		return misused("TASK must be the id of a task, or =KEY, not", arguments[1]);
	status = look(disk, arguments[0], &replay);
	if (status == GOOD) {
		task = meant.key_len > 0 ? tasks_find_key(&replay.tasks, meant.key, meant.key_len)
		                         : tasks_find(&replay.tasks, meant.id);
		if (!task)
			status = no_such_task(arguments[1]);
		else
			(void)fwrite(task_data(task), 1, task->data_len, stdout);
	}
	replay_fini(&replay);
	return status;
}

/* ---- changes ---- */

static enum status open_journal(struct timerhub_journal **ret_journal, const char *dir)
{
	int result = timerhub_journal_open(ret_journal, dir, NULL);

	if (result == -EBUSY)
		return tool_in_use(dir);
	return result < 0 ? complain_of_journal(dir, result) : GOOD;
}

static enum status complain_of_change(const char *task, int error, uint32_t op)
{
	if (error == -ENOENT && op != TIMERHUB_JOURNAL_REVIVE)
		return no_such_task(task);
	if (error == -ENOENT || error == -EBUSY) {
		(void)fprintf(stderr, "timerhub-journal: %s: %s\n", task,
		              error == -ENOENT ? "no such task is parked" : "parked; use revive");
		return REFUSED;
	}
	return tool_complain(task, error);
}

static enum status change_one(char **arguments, struct timerhub_journal_change *change)
{
	struct timerhub_journal *journal = NULL;
	struct meant meant;
	enum status status;
	int result;

	if (!read_meant(arguments[1], &meant))
		return misused("TASK must be the id of a task, or =KEY, not", arguments[1]);
	status = open_journal(&journal, arguments[0]);
	if (status != GOOD)
		return status;
	change->id = meant.id;
	change->key = meant.key;
	change->key_len = meant.key_len;
	result = timerhub_journal_commit(journal, change, 1);
	timerhub_journal_close(journal);
	return result < 0 ? complain_of_change(arguments[1], result, change->op) : GOOD;
}

enum status tool_cancel(struct disk *disk, char **arguments)
{
	struct timerhub_journal_change change = { .op = TIMERHUB_JOURNAL_CANCEL };

	(void)disk;
	return change_one(arguments, &change);
}

static enum status change_time(char **arguments, uint32_t op)
{
	struct timerhub_journal_change change = { .op = op };
	struct when when;

	if (!when_read(arguments[2], &when))
		return misused(WHEN_WRONG, arguments[2]);
	change.when_ns = when.ns;
	change.flags = when.is_absolute ? TIMERHUB_ABSOLUTE : 0;
	return change_one(arguments, &change);
}

enum status tool_move(struct disk *disk, char **arguments)
{
	(void)disk;
	return change_time(arguments, TIMERHUB_JOURNAL_MOVE);
}

enum status tool_revive(struct disk *disk, char **arguments)
{
	(void)disk;
	return change_time(arguments, TIMERHUB_JOURNAL_REVIVE);
}

/* ---- backup ---- */

enum status tool_backup(struct disk *disk, char **arguments)
{
	bool by_copy = false;
	int result = backup_copy(disk, arguments[1], &by_copy);

	console_work_end();
	return result < 0 ? complain_of_journal(arguments[by_copy], result) : GOOD;
}
