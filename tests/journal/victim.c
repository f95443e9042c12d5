/* SPDX-License-Identifier: MIT */
/*
 * What kill_test.py kills: a fixed sequence of calls on a real directory by one thread, so that
 * strace can count its system calls. Says what it is about to do, and what came of it.
 *
 *   victim run DIR      the sequence: "? CALL ID" and then "= RESULT" for each call
 *   victim threads DIR  the whole journal, four threads: "+ ID" put, "? ID" about to acknowledge
 *                       it, "- ID" acknowledged
 *   victim hold DIR     opens it, puts a task of each kind, prints "ready", and ends with its input
 *   victim show DIR     open, and print each live task: "ID LENGTH"
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model.h"

static struct timerhub_journal *journal;

static void say(const char *what, uint64_t id, int64_t result)
{
	char line[64];
	int length = id > 0 ? snprintf(line, sizeof(line), "? %s %" PRIu64 "\n", what, id)
	                    : snprintf(line, sizeof(line), "= %" PRId64 "\n", result);

	if (write(STDOUT_FILENO, line, (size_t)length) != length)
		_exit(3);
}

static void put(uint64_t number)
{
	static const char data[400];
	uint64_t id = 0;
	int result;

	say("put", journal->next_id, 0);
	result = timerhub_journal_put(journal, HOUR, 0, data, 200 + (size_t)number * 37 % 200, &id);
	say("", 0, result);
}

static void end(uint64_t id)
{
	say("cancel", id, 0);
	say("", 0, timerhub_journal_cancel(journal, id));
}

/* Another is put in place of this one, or neither. */
static void replace(uint64_t id)
{
	struct timerhub_journal_change changes[2] = {
		{ .op = TIMERHUB_JOURNAL_CANCEL, .id = id },
		{ .op = TIMERHUB_JOURNAL_PUT,
		  .when_ns = HOUR,
		  .interval_ns = HOUR,
		  .key = &id,
		  .key_len = sizeof(id) },
	};

	say("replace", id, 0);
	say("", 0, timerhub_journal_commit(journal, changes, 2));
}

/* Enough for some rotations and some compaction. */
static void run(void)
{
	for (uint64_t i = 0; i < 24; i++) {
		put(i);
		if (i % 8 == 7)
			replace(journal->next_id - 1);
		else if (i % 4 != 0)
			end(journal->next_id - 1);
	}
}

/* ---- many threads ---- */

static void tell(char sign, uint64_t id)
{
	char line[32];
	int length = snprintf(line, sizeof(line), "%c %" PRIu64 "\n", sign, id);

	if (write(STDOUT_FILENO, line, (size_t)length) != length)
		_exit(3);
}

static void *work(void *argument)
{
	static const char data[400];
	unsigned number = (unsigned)(uintptr_t)argument;

	for (unsigned i = 0; i < 24; i++) {
		uint64_t id = 0;

		expect_eq(
			timerhub_journal_put(journal, HOUR, 0, data, (number + i) * 37 % 400, &id),
			0);
		tell('+', id);
		if (i % 4 == 0)
			continue;
		tell('?', id);
		expect_eq(timerhub_journal_cancel(journal, id), 0);
		tell('-', id);
	}
	return NULL;
}

static int run_threads(const char *dir, const struct timerhub_journal_config *config)
{
	pthread_t threads[4];

	if (timerhub_journal_open(&journal, dir, config) < 0)
		return 1;
	for (uintptr_t i = 0; i < COUNT_OF(threads); i++)
		thread_start(&threads[i], work, (void *)i);
	for (unsigned i = 0; i < COUNT_OF(threads); i++)
		thread_join(threads[i]);
	timerhub_journal_close(journal);
	return 0;
}

/* ---- a journal in use ---- */

/* Ids 1 to 4: parked, taken, with a key, periodic; then both, and the end of what is read. */
static int run_hold(const char *dir, const struct timerhub_journal_config *config)
{
	struct timerhub_journal_change periodic = {
		.op = TIMERHUB_JOURNAL_PUT,
		.when_ns = HOUR,
		.interval_ns = HOUR,
	};
	struct timerhub_task task;
	char byte;

	if (timerhub_journal_open(&journal, dir, config) < 0)
		return 1;
	for (unsigned i = 0; i < 2; i++)
		expect_eq(timerhub_journal_put(journal, i, TIMERHUB_ABSOLUTE, "due", 3, NULL), 0);
	expect_eq(timerhub_journal_put_key(journal, "a key", 5, HOUR, 0, "later", 5, NULL), 0);
	expect_eq(timerhub_journal_commit(journal, &periodic, 1), 0);
	expect_eq(timerhub_journal_take(journal, &task, 0), 1);
	expect_eq(timerhub_journal_park(journal, &task, 7), 0);
	expect_eq(timerhub_journal_take(journal, &task, 0), 1);
	expect_eq(timerhub_journal_revive(journal, 1, HOUR, 0), 0);
	expect_eq(timerhub_journal_take(journal, &task, 0), 0);
	expect_eq(timerhub_journal_move(journal, 1, 0, TIMERHUB_ABSOLUTE), 0);
	expect_eq(timerhub_journal_take(journal, &task, 0), 1);
	expect_eq(timerhub_journal_park(journal, &task, 8), 0);
	puts("ready");
	(void)fflush(stdout);
	(void)!read(STDIN_FILENO, &byte, 1);
	return 0; /* not closed */
}

/* ---- one thread ---- */

static void show_task(void *context, struct task *task)
{
	(void)context;
	printf("%" PRIu64 " %u\n", task->id, task->data_len);
}

int main(int argc, char **argv)
{
	struct timerhub_journal_config config = {
		.size = sizeof(config), .segment_bytes = 4096, .data_max = 400, .tasks_max = 100
	};
	struct test_alarm alarm;
	struct disk *disk;
	int result;

	if (argc != 3 || journal_read_config(&config, &config) < 0)
		return 2;
	if (strcmp(argv[1], "threads") == 0)
		return run_threads(argv[2], &config);
	if (strcmp(argv[1], "hold") == 0)
		return run_hold(argv[2], &config);
	test_alarm_open(&alarm, SEC);
	result = disk_real_open(&disk, argv[2]);
	if (result < 0)
		return 2;
	result = journal_open(&journal, disk, &alarm.alarm, &config, false);
	if (result < 0) {
		fprintf(stderr, "open: %s\n", strerror(-result));
		return 1;
	}
	if (strcmp(argv[1], "show") != 0)
		run();
	else
		tasks_each(&journal->tasks, show_task, NULL);
	timerhub_journal_close(journal);
	disk_real_close(disk);
	return 0;
}
