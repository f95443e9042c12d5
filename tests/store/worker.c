/* SPDX-License-Identifier: MIT */
/*
 * One of the processes of model_test.py and power_test.py, which makes calls by a seed and keeps a
 * book of them: a line before each change with what is wanted, and one after it with the result.
 * Each line is one write(2), so the book is right to the last whole line, whenever the process is
 * killed.
 *
 * Usage: worker DATABASE BOOK NAME SEED MILLISECONDS, or, to end all tasks, 0 milliseconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <timerhub_store.h>
#include <unistd.h>

#include <dice.h>

#define MS UINT64_C(1000000)
#define LEASE_NS (150 * MS)
#define KEPT 8

static struct timerhub_store *store;
static sqlite3 *own;
static struct dice dice;
static const char *name;
static unsigned keys;
static int book;
static struct timerhub_store_task kept[KEPT]; /* to be answered late */

static uint64_t clock_ns(clockid_t id)
{
	struct timespec now;

	(void)clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void write_down(const char *format, ...)
{
	char line[700];
	va_list words;
	int length;

	va_start(words, format);
	length = vsnprintf(line, sizeof(line), format, words);
	va_end(words);
	if (write(book, line, (size_t)length) != length)
		exit(2);
}

/* What must not happen on a machine that works. */
static int answered(const char *op, const char *key, int result)
{
	write_down("A %s %s %d\n", op, key, result);
	if (result == -EIO || result == -EINVAL || result == -EBADMSG || result == -ENOSPC)
		exit(3);
	return result;
}

static const char *new_key(char key[64])
{
	(void)snprintf(key, 64, "%s-%u", name, keys++);
	return key;
}

/* Returns the key of a task that this process may have put. */
static const char *old_key(char key[64])
{
	(void)snprintf(key, 64, "%s-%u", name, (unsigned)dice_below(&dice, keys + 1));
	return key;
}

static int put_by_submit(const struct timerhub_store_put *put)
{
	struct timerhub_store_change change = { .op = TIMERHUB_STORE_PUT,
		                                .key = put->key,
		                                .when_ns = put->when_ns,
		                                .data = put->data,
		                                .data_len = put->data_len };
	struct timerhub_store_completion completion = { .result = 0 };
	struct pollfd fd = { .fd = timerhub_store_completion_fd(store), .events = POLLIN };
	int result = timerhub_store_submit(store, &change, 1, 0);

	while (result == 0 && timerhub_store_completions(store, &completion, 1) == 0)
		(void)poll(&fd, 1, -1);
	return result < 0 ? result : completion.result;
}

static void put(void)
{
	struct timerhub_store_put put = { .size = sizeof(put), .data = "data", .data_len = 4 };
	static char big[20000];
	char key[64];

	put.key = new_key(key);
	put.when_ns = dice_below(&dice, 40 * MS);
	if (dice_one_in(&dice, 20)) {
		put.data = big;
		put.data_len = sizeof(big);
	}
	write_down("I put %s\n", key);
	(void)answered("put", key,
	               dice_one_in(&dice, 4) ? put_by_submit(&put)
	                                     : timerhub_store_put(store, &put, NULL));
}

static void put_by_sql(void)
{
	char key[64], text[256];
	int result;

	new_key(key);
	(void)snprintf(text, sizeof(text),
	               "INSERT INTO timerhub_tasks(due_us,key) VALUES(%" PRIu64 ",'%s')",
	               clock_ns(CLOCK_REALTIME) / 1000 + dice_below(&dice, 20000), key);
	write_down("I put %s\n", key);
	result = sqlite3_exec(own, text, NULL, NULL, NULL);
	(void)answered("put", key, result == SQLITE_OK ? 0 : -EAGAIN);
}

static void cancel_or_move(bool moves)
{
	const char *op = moves ? "move" : "cancel";
	char key[64];

	old_key(key);
	write_down("I %s %s\n", op, key);
	(void)answered(op, key,
	               moves ? timerhub_store_move_key(store, key, dice_below(&dice, 30 * MS), 0)
	                     : timerhub_store_cancel_key(store, key));
}

/* Writes a row (the task's effect), ends the task and puts another, in one transaction. */
static void commit_in(struct timerhub_store_task *task)
{
	struct timerhub_store_change changes[2] = {
		{ .op = TIMERHUB_STORE_DONE, .task = task },
		{ .op = TIMERHUB_STORE_PUT, .when_ns = 5 * MS, .data = "f", .data_len = 1 },
	};
	char key[64], follower[64], text[256];
	int result = -EAGAIN;

	(void)snprintf(key, sizeof(key), "%s", task->key);
	changes[1].key = new_key(follower);
	write_down("I commit_in %s %" PRIu64 " %" PRIu64 " %s\n", key, task->delivery,
	           clock_ns(CLOCK_BOOTTIME), follower);
	(void)snprintf(text, sizeof(text), "INSERT INTO effects VALUES('%s','%s')", key, follower);
	if (sqlite3_exec(own, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK &&
	    sqlite3_exec(own, text, NULL, NULL, NULL) == SQLITE_OK)
		result = timerhub_store_commit_in(store, own, changes, 2);
	/* a rollback by choice too */
	if (result == 0 && !dice_one_in(&dice, 5))
		result = sqlite3_exec(own, "COMMIT", NULL, NULL, NULL) == SQLITE_OK
		                 ? timerhub_store_sync(store)
		                 : -EAGAIN;
	else if (result == 0)
		result = -ECANCELED;
	if (!sqlite3_get_autocommit(own))
		(void)sqlite3_exec(own, "ROLLBACK", NULL, NULL, NULL);
	(void)answered("commit_in", key, result);
	timerhub_store_release(store, task);
}

static void commit(struct timerhub_store_task *task)
{
	struct timerhub_store_change changes[2] = {
		{ .op = TIMERHUB_STORE_DONE, .task = task },
		{ .op = TIMERHUB_STORE_PUT, .when_ns = 5 * MS },
	};
	char key[64], follower[64];
	int result;

	(void)snprintf(key, sizeof(key), "%s", task->key);
	changes[1].key = new_key(follower);
	write_down("I commit %s %" PRIu64 " %" PRIu64 " %s\n", key, task->delivery,
	           clock_ns(CLOCK_BOOTTIME), follower);
	result = timerhub_store_commit(store, changes, 2);
	(void)answered("commit", key, result);
	timerhub_store_release(store, task);
}

static void answer(struct timerhub_store_task *task)
{
	static const char *const ops[] = { "done", "done", "retry", "park" };
	unsigned op = (unsigned)dice_below(&dice, 4);
	char key[64];
	int result;

	(void)snprintf(key, sizeof(key), "%s", task->key);
	write_down("I %s %s %" PRIu64 " %" PRIu64 "\n", ops[op], key, task->delivery,
	           clock_ns(CLOCK_BOOTTIME));
	if (op < 2)
		result = timerhub_store_done(store, task);
	else if (op == 2)
		result = timerhub_store_retry(store, task, dice_below(&dice, 10 * MS));
	else
		result = timerhub_store_park(store, task, 1);
	(void)answered(ops[op], key, result);
	timerhub_store_release(store, task);
}

static void handle(struct timerhub_store_task *task)
{
	unsigned slot = (unsigned)dice_below(&dice, KEPT);

	if (dice_one_in(&dice, 4) && timerhub_store_touch(store, task, 2 * LEASE_NS) == 0)
		write_down("L %s %" PRIu64 " %" PRIu64 "\n", task->key, task->delivery,
		           task->lease_end_ns);
	switch (dice_below(&dice, 6)) {
	case 0:
		commit_in(task);
		break;
	case 1:
		commit(task);
		break;
	case 2:
		/* keep the task until another needs its slot, often beyond its lease */
		if (kept[slot].data)
			answer(&kept[slot]);
		kept[slot] = *task;
		break;
	default:
		answer(task);
	}
}

static int take(uint64_t timeout_ns)
{
	struct timerhub_store_task tasks[4];
	int count = timerhub_store_take(store, tasks, 4, timeout_ns);

	for (int i = 0; i < count; i++) {
		/* From now until the lease's end nobody else may take the task. */
		write_down("T %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", tasks[i].key,
		           tasks[i].delivery, clock_ns(CLOCK_BOOTTIME), tasks[i].lease_end_ns);
		if (clock_ns(CLOCK_REALTIME) < tasks[i].due_ns)
			write_down("E early %s\n", tasks[i].key);
	}
	for (int i = 0; i < count; i++)
		handle(&tasks[i]);
	if (count < 0)
		(void)answered("take", "-", count);
	return count;
}

static void step(void)
{
	uint64_t roll = dice_below(&dice, 100);

	if (roll < 35)
		put();
	else if (roll < 40)
		put_by_sql();
	else if (roll < 48)
		cancel_or_move(false);
	else if (roll < 55)
		cancel_or_move(true);
	else
		(void)take(dice_below(&dice, 10 * MS));
}

static void end_all(void)
{
	struct timerhub_store_task task;
	int result;

	(void)sqlite3_exec(own,
	                   "UPDATE timerhub_tasks SET due_us=1764353000000000 WHERE id IN"
	                   "(SELECT id FROM timerhub_list WHERE state='parked')",
	                   NULL, NULL, NULL);
	while ((result = timerhub_store_take(store, &task, 1, 2 * LEASE_NS)) == 1) {
		write_down("Z %s\n", task.key);
		if (timerhub_store_done(store, &task) < 0)
			exit(4);
	}
	exit(result == 0 ? 0 : 5);
}

int main(int argc, char **argv)
{
	struct timerhub_store_config config = { .size = sizeof(config),
		                                .lease_ns = LEASE_NS,
		                                .attempts_max = UINT32_MAX,
		                                .timeout_ns = 20000 * MS };
	uint64_t end_ns;
	int result;

	if (argc != 6)
		return 1;
	name = argv[3];
	dice = dice_seeded(strtoull(argv[4], NULL, 10), 1);
	end_ns = clock_ns(CLOCK_MONOTONIC) + strtoull(argv[5], NULL, 10) * MS;
	book = open(argv[2], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	result = timerhub_store_open(&store, argv[1], &config);
	if (result < 0 || book < 0 || sqlite3_open(argv[1], &own) != SQLITE_OK) {
		(void)fprintf(stderr, "worker: open: %d\n", result);
		return 1;
	}
	(void)sqlite3_busy_timeout(own, 20000);
	(void)sqlite3_exec(own, "CREATE TABLE IF NOT EXISTS effects(key, follower)", NULL, NULL,
	                   NULL);
	if (strcmp(argv[5], "0") == 0)
		end_all();
	while (clock_ns(CLOCK_MONOTONIC) < end_ns)
		step();
	timerhub_store_close(store);
	return sqlite3_close(own) == SQLITE_OK ? 0 : 1;
}
