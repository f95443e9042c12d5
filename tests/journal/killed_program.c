/* SPDX-License-Identifier: MIT */
/*
 * The program ("victim") that kill_test.py kills. The program makes fixed sequences of calls on a
 * journal in a real directory. Before each call the program prints the intended state of each task,
 * and after the call the result. Therefore kill_test.py need not know which calls the program
 * makes:
 *
 *   ? CALL ID:STATE:DUE:REASON ...   the call begins; STATE is pending, parked or gone
 *   = CALL RESULT                    the call has ended, or the completion of a submit has come
 *   - CALL                           the submit was refused, so it changes nothing
 *   t ID                             the task with this id will be taken
 *
 * The first argument of the program is a command, and the second argument is the directory.
 *
 * The command `run` puts tasks, cancels tasks, and commits a put and a cancel together. One thread
 * makes all calls of the command `run`, so that strace can count the system calls.
 *
 * The command `park` delivers tasks until they are parked, parks tasks with a reason, and revives
 * and drops tasks. The command `park` also parks and puts tasks in one commit. One thread makes all
 * calls.
 *
 * The command `submit` submits commits from one thread, keeps several commits in flight, and waits
 * for their completions.
 *
 * The command `threads` puts and cancels tasks from four threads. A thread prints a sign and the id
 * of a task. The sign is a plus sign after a put, a question mark before a cancel, and a minus sign
 * after the cancel.
 *
 * The command `hold` opens the journal, puts a task of each kind, and prints "ready". The command
 * `hold` ends at the end of its input.
 *
 * The command `show` opens the journal, and prints each live task as "ID LENGTH STATE DUE REASON
 * ATTEMPTS".
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model.h"

static struct timerhub_journal *journal;

#define ATTEMPTS_MAX 2
#define REASON 70
#define FLIGHTS 12 /* largest number of submits in flight */
#define SUBMITS 48
#define HELD 16 /* number of due tasks that are parked by submitted commits */

static const char bytes[400];

/* ---- what is said ---- */

static char line[512];
static size_t line_used;

static void write_line(void)
{
	line[line_used++] = '\n';
	if (write(STDOUT_FILENO, line, line_used) != (ssize_t)line_used)
		_exit(3);
}

/* Returns the number of the call. Then come say_task() for each task, and write_line(). */
static uint64_t say_call(void)
{
	static uint64_t calls;

	calls++;
	line_used = (size_t)snprintf(line, sizeof(line), "? %" PRIu64, calls);
	return calls;
}

static void say_task(uint64_t id, const char *state, uint64_t due_ns, uint32_t reason)
{
	line_used += (size_t)snprintf(line + line_used, sizeof(line) - line_used,
	                              " %" PRIu64 ":%s:%" PRIu64 ":%u", id, state, due_ns, reason);
}

static void say_number(const char *what, uint64_t number)
{
	line_used = (size_t)snprintf(line, sizeof(line), "%s %" PRIu64, what, number);
	write_line();
}

static void say_result(uint64_t call, int result)
{
	line_used = (size_t)snprintf(line, sizeof(line), "= %" PRIu64 " %d", call, result);
	write_line();
}

/* ---- one thread ---- */

static uint64_t put(uint64_t due_ns, size_t bytes_count)
{
	uint64_t call = say_call(), id = journal->backlog.next_id;

	say_task(id, "pending", due_ns, 0);
	write_line();
	say_result(call, timerhub_journal_put(journal, due_ns, TIMERHUB_ABSOLUTE, bytes,
	                                      bytes_count, NULL));
	return id;
}

static void end(uint64_t id)
{
	uint64_t call = say_call();

	say_task(id, "gone", 0, 0);
	write_line();
	say_result(call, timerhub_journal_cancel(journal, id));
}

/* In one commit: both changes or none. */
static void replace(uint64_t id)
{
	struct timerhub_journal_change changes[2] = {
		{ .op = TIMERHUB_JOURNAL_CANCEL, .id = id },
		{ .op = TIMERHUB_JOURNAL_PUT,
		  .flags = TIMERHUB_ABSOLUTE,
		  .when_ns = HOUR,
		  .interval_ns = HOUR,
		  .key = &id,
		  .key_len = sizeof(id) },
	};
	uint64_t call = say_call();

	say_task(id, "gone", 0, 0);
	say_task(journal->backlog.next_id, "pending", HOUR, 0);
	write_line();
	say_result(call, timerhub_journal_commit(journal, changes, 2));
}

/* Make enough calls for rotations of segments and for compaction. */
static void run(void)
{
	for (uint64_t i = 0; i < 24; i++) {
		uint64_t id = put(HOUR, 200 + (size_t)i * 37 % 200);

		if (i % 8 == 7)
			replace(id);
		else if (i % 4 != 0)
			end(id);
	}
}

/* ---- parking, by one thread ---- */

/* If the last put was refused, this may be an earlier task. */
static bool take(struct timerhub_journal_task *ret_task)
{
	struct task *first = agenda_first(&journal->backlog.agenda);

	if (!first || first->due_ns > SEC)
		return false;
	say_number("t", first->id);
	expect_eq(timerhub_journal_take(journal, ret_task, 0), 1);
	expect_eq(ret_task->id, first->id);
	return true;
}

static void take_and_retry(void)
{
	struct timerhub_journal_task task;
	uint64_t call;

	if (!take(&task))
		return;
	call = say_call();
	if (task.attempts < ATTEMPTS_MAX)
		say_task(task.id, "pending", SEC, 0);
	else
		say_task(task.id, "parked", task.due_ns, 0);
	write_line();
	say_result(call, timerhub_journal_retry(journal, &task, 0));
}

static void take_and_park(uint32_t reason)
{
	struct timerhub_journal_task task;
	uint64_t call;

	if (!take(&task))
		return;
	call = say_call();
	say_task(task.id, "parked", task.due_ns, reason);
	write_line();
	say_result(call, timerhub_journal_park(journal, &task, reason));
}

static void revive(uint64_t id)
{
	uint64_t call = say_call();

	say_task(id, "pending", HOUR + id, 0);
	write_line();
	say_result(call, timerhub_journal_revive(journal, id, HOUR + id, TIMERHUB_ABSOLUTE));
}

/* In one commit: parks a taken task, drops a parked one and puts another. */
static void park_drop_and_put(uint64_t dropped, uint32_t reason)
{
	struct timerhub_journal_task task;
	struct timerhub_journal_change changes[3] = {
		{ .op = TIMERHUB_JOURNAL_PARK, .task = &task, .reason = reason },
		{ .op = TIMERHUB_JOURNAL_CANCEL, .id = dropped },
		{ .op = TIMERHUB_JOURNAL_PUT, .flags = TIMERHUB_ABSOLUTE, .when_ns = HOUR },
	};
	uint64_t call;

	if (!take(&task))
		return;
	call = say_call();
	say_task(task.id, "parked", task.due_ns, reason);
	say_task(dropped, "gone", 0, 0);
	say_task(journal->backlog.next_id, "pending", HOUR, 0);
	write_line();
	say_result(call, timerhub_journal_commit(journal, changes, COUNT_OF(changes)));
}

static void park(void)
{
	uint64_t parked = 0;

	for (uint32_t i = 0; i < 6; i++) {
		uint64_t id = put(i, 300);

		take_and_retry();
		take_and_retry();
		if (i % 3 == 0)
			revive(id);
		else if (i % 3 == 1)
			end(id);
		else
			parked = id;
		(void)put(i, 10 * i);
		if (i % 3 == 2)
			park_drop_and_put(parked, REASON + i);
		else
			take_and_park(REASON + i);
	}
}

/* ---- commits in flight ---- */

static struct timerhub_journal_task due[HELD];
static unsigned due_count;

/* A commit with two puts, and perhaps a park of a taken task or a cancel. */
static bool submit(unsigned number, uint64_t cancelled)
{
	uint64_t call = say_call(), id = journal->backlog.next_id, when_ns = HOUR + number;
	struct timerhub_journal_change changes[3] = {
		{ .op = TIMERHUB_JOURNAL_PUT, .key = &id, .key_len = sizeof(id) },
		{ .op = TIMERHUB_JOURNAL_PUT, .data = bytes, .data_len = number * 5 },
	};
	unsigned count = 2;
	int result;

	for (unsigned i = 0; i < 2; i++) {
		changes[i].flags = TIMERHUB_ABSOLUTE;
		changes[i].when_ns = when_ns;
		say_task(id + i, "pending", when_ns, 0);
	}
	if (number % 3 == 0 && due_count > 0) {
		const struct timerhub_journal_task *task = &due[--due_count];

		say_task(task->id, "parked", task->due_ns, number);
		changes[count++] = (struct timerhub_journal_change){ .op = TIMERHUB_JOURNAL_PARK,
			                                             .task = task,
			                                             .reason = number };
	} else if (cancelled > 0) {
		say_task(cancelled, "gone", 0, 0);
		changes[count++] = (struct timerhub_journal_change){ .op = TIMERHUB_JOURNAL_CANCEL,
			                                             .id = cancelled };
	}
	write_line();
	result = timerhub_journal_submit(journal, changes, count, call);
	if (result < 0)
		say_number("-", call);
	return result == 0;
}

/* Prints all that have come. Returns their number, and the id of one. */
static unsigned complete(uint64_t *ret_id)
{
	struct timerhub_journal_completion completions[FLIGHTS];
	struct pollfd waiting = { .fd = timerhub_journal_completion_fd(journal), .events = POLLIN };
	int count;

	while ((count = timerhub_journal_completions(journal, completions, FLIGHTS)) == 0)
		(void)poll(&waiting, 1, -1);
	for (int i = 0; i < count; i++) {
		say_result(completions[i].tag, completions[i].result);
		if (completions[i].result == 0)
			*ret_id = completions[i].id;
	}
	return (unsigned)count;
}

/* Put and take the tasks that submitted commits will park later. */
static void take_some(void)
{
	struct timerhub_journal_change changes[HELD];
	uint64_t call = say_call();

	for (unsigned i = 0; i < HELD; i++) {
		changes[i] = (struct timerhub_journal_change){ .op = TIMERHUB_JOURNAL_PUT,
			                                       .flags = TIMERHUB_ABSOLUTE,
			                                       .when_ns = i };
		say_task(journal->backlog.next_id + i, "pending", i, 0);
	}
	write_line();
	say_result(call, timerhub_journal_commit(journal, changes, HELD));
	while (due_count < HELD && take(&due[due_count]))
		due_count++;
}

static int run_submit(const char *dir, const struct timerhub_journal_config *config)
{
	unsigned flying = 0, number = 0;
	uint64_t completed = 0;
	bool going = true;

	if (timerhub_journal_open(&journal, dir, config) < 0)
		return 1;
	take_some();
	while (flying > 0 || going) {
		while (going && flying < FLIGHTS) {
			if (!submit(number, completed))
				break;
			completed = 0;
			flying++;
			going = ++number < SUBMITS;
		}
		/* final when no commit is in flight */
		if (flying == 0)
			break;
		flying -= complete(&completed);
	}
	timerhub_journal_close(journal);
	return 0;
}

/* ---- many threads ---- */

static void tell(char sign, uint64_t id)
{
	char text[32];
	int length = snprintf(text, sizeof(text), "%c %" PRIu64 "\n", sign, id);

	if (write(STDOUT_FILENO, text, (size_t)length) != length)
		_exit(3);
}

static void *work(void *argument)
{
	unsigned number = (unsigned)(uintptr_t)argument;

	for (unsigned i = 0; i < 24; i++) {
		uint64_t id = 0;

		expect_eq(
			timerhub_journal_put(journal, HOUR, 0, bytes, (number + i) * 37 % 400, &id),
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

/* Task 1 is parked, 2 taken, 3 has a key, 4 is periodic. */
static int run_hold(const char *dir, const struct timerhub_journal_config *config)
{
	struct timerhub_journal_change periodic = {
		.op = TIMERHUB_JOURNAL_PUT,
		.when_ns = HOUR,
		.interval_ns = HOUR,
	};
	struct timerhub_journal_task task;
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
	return 0; /* the process ends without closing the journal */
}

/* ---- what a fresh open finds ---- */

static void show_task(void *context, struct task *task)
{
	bool parked = task->state == TASK_PARKED;

	(void)context;
	printf("%" PRIu64 " %u %s %" PRIu64 " %u %u\n", task->id, task->data_len,
	       parked ? "parked" : "pending", task->due_ns, parked ? task->reason : 0,
	       task->attempts);
}

int main(int argc, char **argv)
{
	struct timerhub_journal_config config = {
		.size = sizeof(config),
		.segment_bytes = 4096,
		.data_max = 400,
		.tasks_max = 200,
		.attempts_max = ATTEMPTS_MAX,
	};
	struct test_timer timer;
	struct disk *disk;
	int result;

	if (argc != 3 || journal_read_config(&config, &config) < 0)
		return 2;
	if (strcmp(argv[1], "threads") == 0)
		return run_threads(argv[2], &config);
	if (strcmp(argv[1], "submit") == 0)
		return run_submit(argv[2], &config);
	if (strcmp(argv[1], "hold") == 0)
		return run_hold(argv[2], &config);
	test_timer_open(&timer, SEC);
	result = disk_real_open(&disk, argv[2]);
	if (result < 0)
		return 2;
	result = journal_open(&journal, disk, &timer.timer, &config, false);
	if (result < 0) {
		fprintf(stderr, "open: %s\n", strerror(-result));
		return 1;
	}
	if (strcmp(argv[1], "run") == 0)
		run();
	else if (strcmp(argv[1], "park") == 0)
		park();
	else
		tasks_each(&journal->backlog.tasks, show_task, NULL);
	timerhub_journal_close(journal);
	disk_real_close(disk);
	return 0;
}
