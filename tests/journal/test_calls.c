/* SPDX-License-Identifier: MIT */
/* The public calls on a real directory, with threads and the real clock. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <timerhub_journal.h>
#include <unistd.h>

#include <harness.h>
#include <process_usage.h>
#include <refuse_calls.h>

static char dir[64];
static struct timerhub_journal *journal;

static const struct timerhub_journal_config small = {
	.size = sizeof(small),
	.tasks_max = 10000,
	.data_max = 1000,
	.segment_bytes = 65536,
};

static uint64_t wall_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * SEC + (uint64_t)now.tv_nsec;
}

static void new_dir(void)
{
	const char *base = getenv("TMPDIR");

	if (!base || strlen(base) > 30)
		base = "/tmp";
	(void)snprintf(dir, sizeof(dir), "%s/journal-XXXXXX", base);
	expect(mkdtemp(dir) != NULL);
}

static void remove_dir(void)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	expect_eq(system(command), 0);
}

static void in_dir(char path[160], const char *name)
{
	(void)snprintf(path, 160, "%s/%s", dir, name);
}

static void begin(const struct timerhub_journal_config *config)
{
	new_dir();
	expect_eq(timerhub_journal_open(&journal, dir, config), 0);
}

static void end(void)
{
	timerhub_journal_close(journal);
	journal = NULL;
	remove_dir();
}

static struct timerhub_journal_stats stats(void)
{
	struct timerhub_journal_stats now;

	expect_eq(timerhub_journal_stats(journal, &now), 0);
	return now;
}

static uint64_t put(uint64_t delay_ns, const char *data)
{
	uint64_t id = 0;

	expect_eq(timerhub_journal_put(journal, delay_ns, 0, data, strlen(data), &id), 0);
	expect(id != 0);
	return id;
}

static struct timerhub_journal_task take(void)
{
	struct timerhub_journal_task task = { 0 };

	expect_eq(timerhub_journal_take(journal, &task, ARRIVES), 1);
	expect_le(task.due_ns, wall_ns());
	return task;
}

static bool is_readable(void)
{
	return fd_readable(timerhub_journal_fd(journal));
}

/* The fd may still be readable for a task that has ended; a take makes it unreadable. */
static void expect_silence(void)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;
	struct timerhub_journal_task task;

	do {
		expect_eq(timerhub_journal_take(journal, &task, 0), 0);
		expect_lt(monotonic_ns(), until_ns);
	} while (is_readable());
}

/* ---- deliveries ---- */

/* A stopped worker's lease ends, another ends the task: the first one's data must stay. */
START_TEST(data_stays_its_takers_though_another_ends_the_task)
{
	struct timerhub_journal_config config = small;
	struct timerhub_journal_task slow, quick;
	char data[500], other[500];
	uint64_t before;

	config.lease_ns = 20 * MS;
	begin(&config);
	memset(data, 'a', sizeof(data));
	expect_eq(timerhub_journal_put_key(journal, "key", 3, 0, 0, data, sizeof(data), NULL), 0);
	slow = take();
	quick = take();
	expect_eq(quick.id, slow.id);
	expect(quick.delivery != slow.delivery);
	expect(timerhub_journal_touch(journal, &slow, 0) == -ESTALE);
	expect_eq(timerhub_journal_done(journal, &quick), 0);
	expect(timerhub_journal_touch(journal, &slow, 0) != 0);
	expect_eq(stats().tasks, 0);
	expect_eq(stats().data_bytes, sizeof(data) + 3);
	/* would reuse the memory if it were freed */
	memset(other, 'b', sizeof(other));
	for (unsigned i = 0; i < 20; i++)
		expect_eq(timerhub_journal_put_key(journal, &i, 3, HOUR, 0, other, sizeof(other),
		                                   NULL),
		          0);
	expect(memcmp(slow.data, data, sizeof(data)) == 0);
	expect(slow.key_len == 3 && memcmp(slow.key, "key", 3) == 0);
	expect_eq(stats().held, 1);
	before = stats().data_bytes;
	expect_eq(timerhub_journal_release(journal, &slow), 0);
	expect_eq(stats().data_bytes, before - sizeof(data) - 3);
	expect_eq(stats().held, 0);
	expect(timerhub_journal_release(journal, &slow) == -ENOENT);
	end();
}
END_TEST

START_TEST(touch_without_leases_changes_nothing)
{
	struct timerhub_journal_task task, other;

	begin(&small);
	expect_eq(small.lease_ns, 0);
	(void)put(0, "task");
	expect_eq(timerhub_journal_take(journal, &task, UINT64_MAX), 1);
	expect_eq(timerhub_journal_touch(journal, &task, 1), 0);
	expect_eq(timerhub_journal_take(journal, &other, 0), 0);
	expect_eq(stats().taken, 1);
	expect_eq(stats().leases_over, 0);
	expect_eq(timerhub_journal_done(journal, &task), 0);
	end();
}
END_TEST

/* ---- keys ---- */

START_TEST(key_names_one_live_task_also_after_a_restart)
{
	unsigned char key[TIMERHUB_JOURNAL_KEY_MAX + 1];
	uint64_t id = 0, other = 0, found = 0;
	struct timerhub_journal_info info;
	struct timerhub_journal_task task;
	char data;

	begin(NULL);
	for (unsigned i = 0; i < sizeof(key); i++)
		key[i] = (unsigned char)i; /* a key may have any bytes */
	expect_eq(timerhub_journal_put_key(journal, key, 255, HOUR, 0, "a", 1, &id), 0);
	expect_eq(timerhub_journal_put_key(journal, key, 254, HOUR, 0, "b", 1, &other), 0);
	expect(timerhub_journal_put_key(journal, key, 256, HOUR, 0, "c", 1, &found) == -EINVAL);
	expect(timerhub_journal_put_key(journal, key, 0, HOUR, 0, "c", 1, &found) == -EINVAL);
	for (unsigned run = 0; run < 2; run++) {
		expect(timerhub_journal_put_key(journal, key, 255, 0, 0, "c", 1, &found) ==
		       -EEXIST);
		expect_eq(found, id);
		found = 0;
		expect_eq(timerhub_journal_find(journal, key, 255, &found), 0);
		expect_eq(found, id);
		expect(timerhub_journal_find(journal, key, 1, &found) == -ENOENT);
		expect_eq(timerhub_journal_peek_key(journal, key, 254, &info, &data, 1), 0);
		expect(info.id == other && info.key_len == 254 && data == 'b');
		expect(timerhub_journal_peek_key(journal, key, 1, &info, &data, 1) == -ENOENT);
		expect(timerhub_journal_peek_key(journal, key, 0, &info, &data, 1) == -EINVAL);
		timerhub_journal_close(journal);
		expect_eq(timerhub_journal_open(&journal, dir, NULL), 0);
	}
	expect_eq(timerhub_journal_move_key(journal, key, 255, 0, 0), 0);
	task = take();
	expect_eq(task.id, id);
	expect(task.key_len == 255 && memcmp(task.key, key, 255) == 0);
	expect(timerhub_journal_cancel_key(journal, key, 255) == -EBUSY);
	expect_eq(timerhub_journal_done(journal, &task), 0);
	expect(timerhub_journal_cancel_key(journal, key, 255) == -ENOENT);
	expect_eq(timerhub_journal_cancel_key(journal, key, 254), 0);
	expect_eq(stats().tasks, 0);
	expect_eq(timerhub_journal_put_key(journal, key, 255, HOUR, 0, "a", 1, &found), 0);
	expect_lt(id, found);
	end();
}
END_TEST

static atomic_uint won;

static void *key_putter(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < 100; i++) {
		char key[16];
		int length = snprintf(key, sizeof(key), "order %u", i), result;

		result = timerhub_journal_put_key(journal, key, (size_t)length, HOUR, 0, NULL, 0,
		                                  NULL);
		expect(result == 0 || result == -EEXIST);
		won += result == 0;
	}
	return NULL;
}

START_TEST(of_many_puts_of_one_key_one_wins)
{
	pthread_t threads[8];

	begin(&small);
	for (unsigned i = 0; i < COUNT_OF(threads); i++)
		thread_start(&threads[i], key_putter, NULL);
	for (unsigned i = 0; i < COUNT_OF(threads); i++)
		thread_join(threads[i]);
	expect_eq(won, 100);
	expect_eq(stats().tasks, 100);
	end();
}
END_TEST

/* ---- commit ---- */

START_TEST(commit_makes_all_changes_or_none)
{
	struct timerhub_journal_change changes[3] = {
		{ .op = TIMERHUB_JOURNAL_DONE },
		{ .op = TIMERHUB_JOURNAL_PUT, .key = "step", .key_len = 4, .when_ns = HOUR },
		{ .op = TIMERHUB_JOURNAL_CANCEL, .id = 12345 },
	};
	struct timerhub_journal_task task;
	uint64_t id = 0;

	begin(NULL);
	expect_eq(timerhub_journal_put_key(journal, "step", 4, 0, 0, "1", 1, &id), 0);
	task = take();
	changes[0].task = &task;
	expect(timerhub_journal_commit(journal, changes, 3) == -ENOENT);
	expect(changes[2].result == -ENOENT);
	expect_eq(stats().tasks, 1);
	expect_eq(stats().taken, 1);
	/* ends a task, and puts the next with its key */
	expect_eq(timerhub_journal_commit(journal, changes, 2), 0);
	expect_lt(id, changes[1].id);
	expect_eq(stats().tasks, 1);
	/* two changes of one task, two puts of one key, too many changes */
	changes[0] = changes[2] = (struct timerhub_journal_change){
		.op = TIMERHUB_JOURNAL_CANCEL,
		.id = changes[1].id,
	};
	changes[1] = (struct timerhub_journal_change){ .op = TIMERHUB_JOURNAL_PUT };
	expect(timerhub_journal_commit(journal, changes, 3) == -EINVAL);
	changes[0] = changes[2] = (struct timerhub_journal_change){
		.op = TIMERHUB_JOURNAL_PUT,
		.key = "k",
		.key_len = 1,
	};
	expect(timerhub_journal_commit(journal, changes, 3) == -EINVAL);
	expect(timerhub_journal_commit(journal, changes, 65) == -E2BIG);
	expect_eq(timerhub_journal_commit(journal, changes, 0), 0);
	changes[0].op = 99;
	expect(timerhub_journal_commit(journal, changes, 1) == -EINVAL);
	expect_eq(stats().tasks, 1);
	end();
}
END_TEST

START_TEST(key_is_free_in_a_commit_only_if_its_task_ends_there)
{
	struct timerhub_journal_change changes[3] = {
		{ .op = TIMERHUB_JOURNAL_PUT, .key = "mine", .key_len = 4, .interval_ns = HOUR },
		{ .op = TIMERHUB_JOURNAL_PUT, .when_ns = HOUR },
	};
	struct timerhub_journal_info info;
	struct timerhub_journal_task task;

	begin(NULL);
	expect_eq(timerhub_journal_commit(journal, changes, 2), 0);
	task = take();
	changes[2] = changes[0];
	/* retries the task with the key, and puts another with it */
	changes[1] = (struct timerhub_journal_change){
		.op = TIMERHUB_JOURNAL_CANCEL,
		.id = changes[1].id,
	};
	changes[0] = (struct timerhub_journal_change){
		.op = TIMERHUB_JOURNAL_RETRY,
		.task = &task,
	};
	expect(timerhub_journal_commit(journal, changes, 3) == -EEXIST);
	expect_eq(changes[2].id, task.id);
	/* ends only one period */
	changes[0].op = TIMERHUB_JOURNAL_DONE;
	expect(timerhub_journal_commit(journal, changes, 3) == -EEXIST);
	expect_eq(stats().tasks, 2);
	expect_eq(timerhub_journal_done(journal, &task), 0);
	changes[0] = (struct timerhub_journal_change){
		.op = TIMERHUB_JOURNAL_CANCEL,
		.key = "mine",
		.key_len = 4,
	};
	expect_eq(timerhub_journal_commit(journal, changes, 3), 0);
	expect_eq(stats().tasks, 1);
	expect_lt(task.id, changes[2].id);
	expect_eq(timerhub_journal_peek(journal, changes[2].id, &info, NULL, 0), 0);
	expect(info.key_len == 4 && memcmp(info.key, "mine", 5) == 0);
	end();
}
END_TEST

/* ---- periodic tasks ---- */

START_TEST(put_makes_a_periodic_task)
{
	const uint64_t interval_ns = 20 * MS;
	uint64_t before_ns = wall_ns(), id;
	struct timerhub_journal_info info;
	struct timerhub_journal_task task;

	begin(NULL);
	expect_eq(timerhub_journal_put_key(journal, "k", 1, interval_ns, TIMERHUB_JOURNAL_PERIODIC,
	                                   "data", 4, &id),
	          0);
	task = take();
	expect_le(before_ns + interval_ns, task.due_ns);
	expect_eq(task.interval_ns, interval_ns);
	expect_eq(timerhub_journal_done(journal, &task), 0);
	expect_eq(timerhub_journal_peek(journal, id, &info, NULL, 0), 0);
	expect_eq(info.due_ns, task.due_ns + task.periods * interval_ns);
	expect_eq(timerhub_journal_cancel_key(journal, "k", 1), 0);
	expect_eq(timerhub_journal_put(journal, HOUR, TIMERHUB_JOURNAL_PERIODIC, NULL, 0, &id), 0);
	expect_eq(timerhub_journal_peek(journal, id, &info, NULL, 0), 0);
	expect_eq(info.interval_ns, HOUR);
	end();
}
END_TEST

START_TEST(period_is_said_once_and_is_a_length)
{
	const uint32_t periodic = TIMERHUB_JOURNAL_PERIODIC;
	struct timerhub_journal_change change = {
		.op = TIMERHUB_JOURNAL_PUT, .flags = periodic, .when_ns = HOUR, .interval_ns = HOUR
	};

	begin(NULL);
	expect(timerhub_journal_commit(journal, &change, 1) == -EINVAL);
	change.op = TIMERHUB_JOURNAL_MOVE;
	change.interval_ns = 0;
	expect(timerhub_journal_commit(journal, &change, 1) == -EINVAL);
	expect(timerhub_journal_put(journal, 0, periodic, NULL, 0, NULL) == -EINVAL);
	expect(timerhub_journal_put(journal, HOUR, periodic | TIMERHUB_ABSOLUTE, NULL, 0, NULL) ==
	       -EINVAL);
	expect(timerhub_journal_put(journal, TIMERHUB_NEVER, periodic, NULL, 0, NULL) == -ERANGE);
	expect_eq(stats().tasks, 0);
	end();
}
END_TEST

START_TEST(periodic_task_ends_if_its_next_period_is_beyond_all_time)
{
	struct timerhub_journal_change change = { .op = TIMERHUB_JOURNAL_PUT,
		                                  .interval_ns = (UINT64_C(1) << 63) - 1 };
	struct timerhub_journal_task task;

	begin(NULL);
	expect_eq(timerhub_journal_commit(journal, &change, 1), 0);
	task = take();
	expect_eq(timerhub_journal_done(journal, &task), 0);
	expect_eq(stats().tasks, 0);
	end();
}
END_TEST

/* ---- without waiting ---- */

static int submit_put(uint64_t tag, const char *key)
{
	struct timerhub_journal_change change = {
		.op = TIMERHUB_JOURNAL_PUT,
		.key = key,
		.key_len = key ? strlen(key) : 0,
		.when_ns = HOUR,
		.data = &tag,
		.data_len = sizeof(tag),
	};

	return timerhub_journal_submit(journal, &change, 1, tag);
}

/* Each accepted submit completes once, and its task is there then and after a restart. */
START_TEST(one_thread_keeps_many_puts_in_flight)
{
	unsigned wanted = scaled(20000), begun = 0, done = 0, empty = 0;
	struct timerhub_journal_completion completions[64];
	struct timerhub_journal_config config = small;
	struct timerhub_journal_info info;
	struct pollfd fd = { .events = POLLIN };
	uint64_t data = 0;

	config.tasks_max = 100000;
	begin(&config);
	fd.fd = timerhub_journal_completion_fd(journal);
	expect_le(0, fd.fd);
	expect_eq(timerhub_journal_completion_fd(journal), fd.fd);
	while (done < wanted) {
		int count;

		while (begun < wanted && submit_put(begun, NULL) == 0)
			begun++;
		expect_eq(poll(&fd, 1, (int)(ARRIVES / MS)), 1);
		count = timerhub_journal_completions(journal, completions, COUNT_OF(completions));
		expect_le(0, count);
		empty += count == 0;
		for (int i = 0; i < count; i++, done++) {
			expect_eq(completions[i].result, 0);
			expect_eq(completions[i].tag, done);
			expect_eq(
				timerhub_journal_peek(journal, completions[i].id, &info, &data, 8),
				0);
			expect_eq(data, completions[i].tag);
		}
	}
	/* once the calls have emptied the list, the fd may be readable once more */
	expect_lt(empty, wanted);
	expect_eq(timerhub_journal_completions(journal, completions, 1), 0);
	expect_eq(poll(&fd, 1, 0), 0);
	expect_eq(stats().tasks, wanted);
	expect_lt(stats().syncs, wanted);
	timerhub_journal_close(journal);
	expect_eq(timerhub_journal_open(&journal, dir, &config), 0);
	expect_eq(stats().tasks, wanted);
	end();
}
END_TEST

/* Also when the program has closed its standard input. */
START_TEST(completion_fd_is_one_fd_for_the_journals_life)
{
	struct timerhub_journal_completion completion;
	int fd;

	begin(&small);
	expect_eq(close(STDIN_FILENO), 0);
	errno = EDOM; /* an errno that an earlier call has left */
	fd = timerhub_journal_completion_fd(journal);
	expect_lt(STDERR_FILENO, fd);
	expect_eq(timerhub_journal_completion_fd(journal), fd);
	expect(!fd_readable(fd));
	expect_eq(submit_put(7, NULL), 0);
	expect(fd_readable_within(fd, ARRIVES));
	expect_eq(timerhub_journal_completions(journal, &completion, 1), 1);
	expect_eq(completion.tag, 7);
	expect_eq(timerhub_journal_completions(journal, &completion, 1), 0);
	expect(!fd_readable(fd));
	timerhub_journal_close(journal);
	expect(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
	remove_dir();
}
END_TEST

/* ---- standard streams that the program has closed ---- */

#define STREAMS 3

static unsigned streams_closed; /* bit i: the test has closed descriptor i */
static atomic_bool printing_ends;

static void expect_streams_closed(void)
{
	for (int fd = 0; fd < STREAMS; fd++)
		if ((streams_closed >> fd & 1) != 0)
			expect(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
}

/* Of any length: over the header of a segment, and beyond it. */
static void *print_on_and_on(void *unused)
{
	static const char text[] = "a message that is as long as the header of a file, and longer; "
				   "nobody reads it, and it must not be in the journal";

	for (size_t i = 0; !atomic_load(&printing_ends); i++)
		for (int fd = 0; fd < STREAMS; fd++)
			if ((streams_closed >> fd & 1) != 0)
				(void)!write(fd, text, 1 + i % (sizeof(text) - 1));
	return unused;
}

#define TASKS 63
#define TASKS_AT_ONCE 7 /* of which a segment has room for no more */
#define TASKS_LEFT 21

static void put_and_end_tasks(void)
{
	static const char data[500] = "data";
	struct timerhub_journal_task tasks[TASKS_AT_ONCE];
	struct timerhub_journal_change puts[TASKS_AT_ONCE], ends[TASKS_AT_ONCE];

	for (unsigned i = 0; i < TASKS_AT_ONCE; i++) {
		puts[i] = (struct timerhub_journal_change){
			.op = TIMERHUB_JOURNAL_PUT,
			.data = data,
			.data_len = sizeof(data),
		};
		ends[i] = (struct timerhub_journal_change){
			.op = TIMERHUB_JOURNAL_DONE,
			.task = &tasks[i],
		};
	}
	for (unsigned i = 0; i < TASKS; i += TASKS_AT_ONCE)
		expect_eq(timerhub_journal_commit(journal, puts, TASKS_AT_ONCE), 0);
	for (unsigned i = TASKS; i > TASKS_LEFT; i -= TASKS_AT_ONCE) {
		for (unsigned j = 0; j < TASKS_AT_ONCE; j++)
			tasks[j] = take();
		expect_eq(timerhub_journal_commit(journal, ends, TASKS_AT_ONCE), 0);
	}
}

/* Segments begin, are opened again, compacted and copied while another thread prints. */
static void live_without_streams(const struct timerhub_journal_config *config, const char *copy)
{
	pthread_t printer;

	thread_start(&printer, print_on_and_on, NULL);
	if (!journal)
		expect_eq(timerhub_journal_open(&journal, dir, config), 0);
	expect_lt(STDERR_FILENO, timerhub_journal_completion_fd(journal));
	expect_lt(STDERR_FILENO, timerhub_journal_fd(journal));
	put_and_end_tasks();
	for (unsigned i = 0; i < 5; i++) {
		timerhub_journal_close(journal);
		expect_eq(timerhub_journal_open(&journal, dir, config), 0);
	}
	expect_eq(mkdir(copy, 0700), 0);
	expect_eq(timerhub_journal_backup(journal, copy), 0);
	atomic_store(&printing_ends, true);
	thread_join(printer);
	expect_streams_closed();
	expect_eq(stats().tasks, TASKS_LEFT);
	expect_eq(stats().failed, 0);
}

/* Closed before the open, or after it, when the numbers are free for the next segment. */
START_TEST(no_descriptor_of_a_journal_is_a_standard_stream)
{
	static const unsigned closed[] = { 7, 7, 1, 2, 4 };
	struct timerhub_journal_config config = small;
	struct timerhub_journal_report report;
	char copy[160];

	config.data_max = 500;
	config.segment_bytes = 4096;
	new_dir();
	in_dir(copy, "copy");
	if (_i % 2 == 1)
		expect_eq(timerhub_journal_open(&journal, dir, &config), 0);
	streams_closed = closed[_i];
	for (int fd = 0; fd < STREAMS; fd++)
		if ((streams_closed >> fd & 1) != 0)
			expect_eq(close(fd), 0);
	live_without_streams(&config, copy);
	timerhub_journal_close(journal);
	expect_eq(timerhub_journal_check(copy, &report), 0);
	expect_eq(report.tasks, TASKS_LEFT);
	expect_eq(timerhub_journal_open(&journal, dir, &config), 0);
	expect_streams_closed();
	expect_eq(stats().tasks, TASKS_LEFT);
	end();
}
END_TEST

START_TEST(submit_refuses_at_once_what_commit_would)
{
	struct timerhub_journal_completion completion;
	struct timerhub_journal_change none = { .op = TIMERHUB_JOURNAL_CANCEL, .id = 99 };
	int result;

	begin(NULL);
	expect_eq(submit_put(1, "key"), 0);
	/* -EAGAIN while the first is in flight, then -EEXIST */
	do {
		result = submit_put(2, "key");
		expect(result == -EAGAIN || result == -EEXIST);
	} while (result == -EAGAIN);
	expect(timerhub_journal_submit(journal, &none, 1, 3) == -ENOENT);
	expect(timerhub_journal_submit(journal, &none, 0, 3) == -EINVAL);
	while (timerhub_journal_completions(journal, &completion, 1) == 0)
		sleep_ns(MS);
	expect_eq(completion.tag, 1);
	expect_eq(completion.result, 0);
	/*
	 * timerhub_journal_close() writes the transactions in flight, and drops their completions.
	 */
	expect_eq(submit_put(4, "other"), 0);
	timerhub_journal_close(journal);
	expect_eq(timerhub_journal_open(&journal, dir, NULL), 0);
	expect_eq(stats().tasks, 2);
	end();
}
END_TEST

/* ---- asking ---- */

struct seen_tasks {
	uint64_t ids[8];
	unsigned count;
};

static int see(void *context, const struct timerhub_journal_info *info)
{
	struct seen_tasks *tasks = context;

	tasks->ids[tasks->count++] = info->id;
	/* a listing's callback may make any call */
	expect_eq(timerhub_journal_cancel(journal, info->id + 1), info->id % 2 == 1 ? 0 : -ENOENT);
	return tasks->count == 3 ? 7 : 0;
}

START_TEST(each_task_is_told_in_order_of_time)
{
	static const uint64_t order[] = { 30, 0, 10, 0, 20, 0, 5, 0 };
	struct seen_tasks tasks = { .count = 0 };
	struct timerhub_journal_info info;
	char data[4] = "";

	begin(NULL);
	for (unsigned i = 0; i < COUNT_OF(order); i++)
		(void)put(order[i] > 0 ? order[i] * HOUR : 100 * HOUR + i, "data");
	expect_eq(timerhub_journal_peek(journal, 3, &info, data, 2), 0);
	expect(info.id == 3 && info.data_len == 4 && memcmp(data, "da\0", 4) == 0);
	expect(timerhub_journal_peek(journal, 99, &info, NULL, 0) == -ENOENT);
	expect_eq(stats().oldest_due_ns,
	          (timerhub_journal_peek(journal, 7, &info, NULL, 0), info.due_ns));
	expect_eq(timerhub_journal_each(journal, see, &tasks), 7);
	expect(tasks.ids[0] == 7 && tasks.ids[1] == 3 && tasks.ids[2] == 5);
	expect_eq(stats().tasks, 5);
	end();
}
END_TEST

static int see_next(void *context, const struct timerhub_journal_info *info)
{
	uint64_t *last = context;

	expect_eq(info->id, *last + 1);
	*last = info->id;
	return 0;
}

static int visit_and_cancel_next(void *context, const struct timerhub_journal_info *info)
{
	unsigned *told = context;

	told[info->state]++;
	(void)timerhub_journal_cancel(journal, info->id + 1);
	return 0;
}

START_TEST(task_that_ends_while_all_are_told_is_left_out)
{
	unsigned told[3] = { 0 };
	struct timerhub_journal_info info;
	struct timerhub_journal_task task;

	begin(NULL);
	(void)put(0, "held");
	task = take();
	for (unsigned i = 0; i < 4; i++)
		(void)put(HOUR + i * SEC, "later");
	expect_eq(timerhub_journal_peek(journal, task.id, &info, NULL, 0), 0);
	expect_eq(info.state, TIMERHUB_JOURNAL_TAKEN);
	expect_eq(timerhub_journal_each(journal, visit_and_cancel_next, told), 0);
	expect_eq(told[TIMERHUB_JOURNAL_TAKEN], 1);
	expect_eq(told[TIMERHUB_JOURNAL_PENDING], 2);
	expect_eq(stats().tasks, 3);
	end();
}
END_TEST

START_TEST(tasks_of_one_time_are_told_in_order_of_ids)
{
	uint64_t last = 0;

	begin(&small);
	for (unsigned i = 0; i < 40; i++)
		expect_eq(timerhub_journal_put(journal, HOUR, TIMERHUB_ABSOLUTE, NULL, 0, NULL), 0);
	expect_eq(timerhub_journal_each(journal, see_next, &last), 0);
	expect_eq(last, 40);
	end();
}
END_TEST

static uint64_t sum(const uint64_t *buckets, unsigned from)
{
	uint64_t all = 0;

	for (unsigned i = from; i < TIMERHUB_LATENESS_BUCKETS; i++)
		all += buckets[i];
	return all;
}

START_TEST(statistics_tell_of_ages)
{
	struct timerhub_journal_task task;
	char to[160];

	begin(&small);
	expect_eq(stats().oldest_due_ns, UINT64_MAX);
	expect_eq(timerhub_journal_put(journal, wall_ns() - 5 * SEC, TIMERHUB_ABSOLUTE, NULL, 0,
	                               NULL),
	          0);
	expect_le(stats().oldest_due_ns, wall_ns() - 5 * SEC);
	task = take();
	expect_eq(timerhub_journal_done(journal, &task), 0);
	/* at least 5 s late, which is more than 2^32 ns */
	expect_eq(sum(stats().lateness, 32), 1);
	expect_eq(sum(stats().lateness, 0), 1);
	expect_eq(sum(stats().sync_ns, 0), stats().syncs);
	expect_lt(0, sum(stats().sync_ns, 1));
	/* a failed backup must not leave compaction stopped */
	in_dir(to, "nowhere");
	expect(timerhub_journal_backup(journal, to) == -ENOENT);
	expect_eq(stats().held_up, TIMERHUB_JOURNAL_NOT_HELD_UP);
	end();
}
END_TEST

START_TEST(bytes_of_all_data_are_bounded)
{
	struct timerhub_journal_config config = small;
	char data[100] = { 0 };
	uint64_t id = 0;

	config.data_bytes_max = 250;
	begin(&config);
	expect_eq(timerhub_journal_put(journal, HOUR, 0, data, 100, &id), 0);
	expect_eq(timerhub_journal_put_key(journal, "key", 3, HOUR, 0, data, 100, NULL), 0);
	expect(timerhub_journal_put(journal, HOUR, 0, data, 48, NULL) == -EAGAIN);
	expect_eq(timerhub_journal_put(journal, HOUR, 0, data, 47, NULL), 0);
	expect_eq(stats().data_bytes, 250);
	expect_eq(timerhub_journal_cancel(journal, id), 0);
	expect_eq(timerhub_journal_put(journal, HOUR, 0, data, 100, NULL), 0);
	end();
}
END_TEST

/* ---- the directory ---- */

START_TEST(lock_that_is_deleted_lets_no_second_writer_in)
{
	struct timerhub_journal *other = NULL;
	char path[160];
	pid_t child;
	int status = 0;

	begin(NULL);
	in_dir(path, "lock");
	expect_eq(unlink(path), 0);
	expect(timerhub_journal_open(&other, dir, NULL) == -EBUSY);
	child = fork();
	if (child == 0)
		_exit(timerhub_journal_open(&other, dir, NULL) == -EBUSY ? 0 : 1);
	expect_eq(waitpid(child, &status, 0), child);
	expect_eq(status, 0);
	end();
}
END_TEST

START_TEST(names_in_the_directory_are_not_trusted)
{
	struct timerhub_journal_report report;
	char path[160], other[160], text[8] = "", block[1000] = "";
	FILE *file;

	begin(NULL);
	(void)put(HOUR, "kept");
	timerhub_journal_close(journal);
	in_dir(other, "other");
	file = fopen(other, "w");
	expect(file && fputs("theirs", file) >= 0 && fclose(file) == 0);
	in_dir(path, "segment.new");
	expect_eq(symlink(other, path), 0);
	in_dir(path, "settings.new");
	expect_eq(symlink(other, path), 0);
	in_dir(path, "spare");
	expect_eq(unlink(path), 0);
	expect_eq(symlink(other, path), 0);
	in_dir(path, "backup.new");
	expect_eq(mkdir(path, 0700), 0);
	expect_eq(timerhub_journal_open(&journal, dir, &small), 0);
	/* Create these links and files again while the journal is open. */
	in_dir(path, "segment.new");
	expect_eq(symlink(other, path), 0);
	while (stats().segments < 3)
		expect_eq(timerhub_journal_put(journal, HOUR, 0, block, sizeof(block), NULL), 0);
	timerhub_journal_close(journal);
	file = fopen(other, "r");
	expect(file && fgets(text, sizeof(text), file) && strcmp(text, "theirs") == 0);
	(void)fclose(file);
	in_dir(path, "settings.new");
	expect_eq(access(path, F_OK), 0);
	in_dir(path, "spare");
	expect_eq(unlink(path), 0);
	expect_eq(mkdir(path, 0700), 0);
	expect(timerhub_journal_check(dir, &report) == -EISDIR);
	expect(timerhub_journal_open(&journal, dir, NULL) == -EISDIR);
	expect_eq(rmdir(path), 0);
	/* must not block a caller */
	in_dir(path, "0000000000000009.seg");
	expect_eq(mkfifo(path, 0600), 0);
	expect(timerhub_journal_check(dir, &report) == -EBADMSG);
	expect(timerhub_journal_open(&journal, dir, NULL) == -EBADMSG);
	expect_eq(unlink(path), 0);
	/* timerhub_journal_open() refuses a journal whose lock file is a link. */
	in_dir(path, "lock");
	expect_eq(unlink(path), 0);
	in_dir(other, "elsewhere");
	expect_eq(symlink(other, path), 0);
	expect(timerhub_journal_open(&journal, dir, NULL) == -ELOOP);
	expect(access(other, F_OK) < 0);
	journal = NULL;
	end();
}
END_TEST

START_TEST(directory_that_is_removed_ends_the_journal)
{
	begin(&small);
	(void)put(HOUR, "kept");
	remove_dir();
	expect(timerhub_journal_put(journal, HOUR, 0, NULL, 0, NULL) == -EIO);
	expect(timerhub_journal_cancel(journal, 1) == -EIO);
	expect_eq(stats().failed, -EIO);
	timerhub_journal_close(journal);
	journal = NULL;
}
END_TEST

static atomic_bool churning;

static void *churner(void *argument)
{
	(void)argument;
	while (churning) {
		uint64_t id = 0;

		expect_eq(timerhub_journal_put(journal, HOUR, 0, dir, 60, &id), 0);
		expect_eq(timerhub_journal_cancel(journal, id), 0);
	}
	return NULL;
}

/* Small, so that segments come and go during the checks. */
START_TEST(check_of_a_journal_in_use_finds_it_whole)
{
	struct timerhub_journal_config config = small;
	struct timerhub_journal_report report;
	pthread_t threads[4];

	config.segment_bytes = 4096;
	begin(&config);
	churning = true;
	for (unsigned i = 0; i < COUNT_OF(threads); i++)
		thread_start(&threads[i], churner, NULL);
	/* until segments came and went; on a slow disk that takes more */
	for (unsigned i = 0; i < scaled(4000) || stats().segments_dropped < 2; i++) {
		expect_context("look", i, 0);
		expect_eq(timerhub_journal_check(dir, &report), 0);
	}
	churning = false;
	for (unsigned i = 0; i < COUNT_OF(threads); i++)
		thread_join(threads[i]);
	end();
}
END_TEST

START_TEST(backup_of_a_journal_in_use_has_all_that_was_acknowledged)
{
	struct timerhub_journal_config config = small;
	pthread_t threads[4];
	char to[160], command[200];
	unsigned descriptors;

	config.segment_bytes = 4096;
	begin(&config);
	descriptors = process_fd_count();
	churning = true;
	for (unsigned i = 0; i < COUNT_OF(threads); i++)
		thread_start(&threads[i], churner, NULL);
	in_dir(to, "copy");
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", to);
	for (unsigned i = 0; i < scaled(50); i++) {
		struct timerhub_journal_report report;
		uint64_t id = put(HOUR, "kept");
		struct timerhub_journal *copy;
		struct timerhub_journal_info info;

		expect_context("backup", i, 0);
		expect_eq(mkdir(to, 0700), 0);
		expect_eq(timerhub_journal_backup(journal, to), 0);
		expect(timerhub_journal_backup(journal, to) == -ENOTEMPTY);
		expect_eq(timerhub_journal_check(to, &report), 0);
		expect_le(i + 1, report.tasks);
		expect_eq(timerhub_journal_open(&copy, to, &config), 0);
		expect_eq(timerhub_journal_peek(copy, id, &info, NULL, 0), 0);
		timerhub_journal_close(copy);
		expect_eq(system(command), 0);
	}
	churning = false;
	for (unsigned i = 0; i < COUNT_OF(threads); i++)
		thread_join(threads[i]);
	/* compaction's segment, and the spare file */
	expect_le(process_fd_count(), descriptors + 2);
	end();
}
END_TEST

static void *cancelled_copier(void *to)
{
	(void)pthread_cancel(pthread_self());
	expect_eq(timerhub_journal_backup(journal, to), 0);
	return NULL;
}

/* Cancelled earlier, it would leave compaction paused. */
START_TEST(cancelled_thread_ends_its_backup_first)
{
	pthread_t thread;
	struct timerhub_journal_report report;
	char to[160];

	begin(&small);
	(void)put(HOUR, "kept");
	in_dir(to, "copy");
	expect_eq(mkdir(to, 0700), 0);
	thread_start(&thread, cancelled_copier, to);
	thread_join(thread);
	expect_eq(timerhub_journal_check(to, &report), 0);
	expect_eq(report.tasks, 1);
	end();
}
END_TEST

START_TEST(what_a_failed_backup_leaves_is_refused)
{
	struct timerhub_journal *copy;
	char to[160], path[160];
	FILE *file;

	begin(&small);
	(void)put(HOUR, "damaged");
	(void)put(HOUR, "kept");
	in_dir(path, "0000000000000001.seg");
	file = fopen(path, "r+");
	expect(file && fseek(file, 64 + 20, SEEK_SET) == 0 && fputc('U', file) == 'U' &&
	       fclose(file) == 0);
	in_dir(to, "copy");
	expect_eq(mkdir(to, 0700), 0);
	expect(timerhub_journal_backup(journal, to) == -EBADMSG);
	expect(timerhub_journal_open(&copy, to, NULL) == -EBADMSG);
	end();
}
END_TEST

/* More tasks than compaction copies in one step: none may be lost between two. */
START_TEST(segment_that_cannot_be_read_loses_none_of_many_tasks)
{
	enum { LIVE = 300 };
	static const char zeros[60000];
	char data[501], path[240];
	int file;

	begin(&small);
	memset(data, 'x', 500);
	data[500] = 0;
	for (unsigned i = 0; i < LIVE; i++)
		(void)put(HOUR, data);
	(void)snprintf(path, sizeof(path), "%s/0000000000000001.seg", dir);
	file = open(path, O_WRONLY);
	expect_le(0, file);
	expect_eq(pwrite(file, zeros, sizeof(zeros), 64), sizeof(zeros));
	(void)close(file);
	for (unsigned i = 0; i < 5000 && stats().segments_dropped == 0; i++)
		expect_eq(timerhub_journal_cancel(journal, put(HOUR, data)), 0);
	expect_eq(stats().healed, 1);
	timerhub_journal_close(journal);
	expect_eq(timerhub_journal_open(&journal, dir, &small), 0);
	expect_eq(stats().tasks, LIVE);
	end();
}
END_TEST

START_TEST(fd_is_readable_just_while_a_task_is_due)
{
	struct pollfd fd = { .events = POLLIN };
	struct timerhub_journal_task task;
	uint64_t id;

	begin(NULL);
	fd.fd = timerhub_journal_fd(journal);
	expect(!is_readable());
	id = put(HOUR, "far");
	expect(!is_readable());
	(void)put(0, "a");
	(void)put(0, "b");
	expect_eq(poll(&fd, 1, 20000), 1);
	expect_eq(timerhub_journal_take(journal, &task, 0), 1);
	expect(is_readable());
	expect_eq(timerhub_journal_take(journal, &task, 0), 1);
	expect_silence();
	expect_eq(timerhub_journal_move(journal, id, 0, 0), 0);
	expect_eq(poll(&fd, 1, 20000), 1);
	expect_eq(timerhub_journal_take(journal, &task, 0), 1);
	expect_eq(timerhub_journal_retry(journal, &task, 30 * MS), 0);
	expect_eq(poll(&fd, 1, 20000), 1);
	expect_eq(timerhub_journal_cancel(journal, id), 0);
	expect_silence();
	end();
}
END_TEST

START_TEST(a_full_journal_says_so_until_there_is_room)
{
	struct timerhub_journal_config config = small;
	uint64_t id = 0, unwritten = 7;

	config.tasks_max = 3;
	begin(&config);
	for (unsigned i = 0; i < 3; i++)
		id = put(HOUR, "one");
	expect(timerhub_journal_put(journal, 0, 0, NULL, 0, &unwritten) == -EAGAIN);
	expect_eq(unwritten, 7);
	expect_eq(timerhub_journal_cancel(journal, id), 0);
	(void)put(HOUR, "again");
	expect(timerhub_journal_put(journal, 0, 0, NULL, 0, NULL) == -EAGAIN);
	/* all tasks are kept, even beyond the new limit */
	timerhub_journal_close(journal);
	config.tasks_max = 1;
	expect_eq(timerhub_journal_open(&journal, dir, &config), 0);
	expect_eq(stats().tasks, 3);
	expect(timerhub_journal_put(journal, 0, 0, NULL, 0, NULL) == -EAGAIN);
	end();
}
END_TEST

/* Else workers that hand tasks on would wait for each other for ever. */
START_TEST(a_full_journal_lets_the_end_of_a_task_put_the_next)
{
	struct timerhub_journal_config config = small;
	struct timerhub_journal_task task;
	struct timerhub_journal_change changes[] = {
		{ .op = TIMERHUB_JOURNAL_DONE, .task = &task },
		{ .op = TIMERHUB_JOURNAL_PUT, .data = "next", .data_len = 4 },
		{ .op = TIMERHUB_JOURNAL_PUT, .data = "more", .data_len = 4 },
	};

	config.tasks_max = 1;
	config.data_bytes_max = 4;
	begin(&config);
	(void)put(0, "step");
	for (unsigned i = 0; i < 100; i++) {
		expect_eq(timerhub_journal_take(journal, &task, UINT64_MAX), 1);
		expect(timerhub_journal_commit(journal, changes, 3) == -EAGAIN);
		expect_eq(timerhub_journal_commit(journal, changes, 2), 0);
		expect_eq(stats().tasks, 1);
	}
	end();
}
END_TEST

/* The same task, delivered in the same order: their numbers must differ. */
START_TEST(answer_to_a_delivery_before_the_reopen_changes_nothing)
{
	struct timerhub_journal_task old, task;

	begin(NULL);
	(void)put(0, "one");
	expect_eq(timerhub_journal_take(journal, &old, UINT64_MAX), 1);
	timerhub_journal_close(journal);
	expect_eq(timerhub_journal_open(&journal, dir, NULL), 0);
	expect_eq(timerhub_journal_take(journal, &task, UINT64_MAX), 1);
	expect_eq(task.id, old.id);
	expect(timerhub_journal_done(journal, &old) < 0);
	expect(memcmp(task.data, "one", task.data_len) == 0);
	expect_eq(timerhub_journal_done(journal, &task), 0);
	end();
}
END_TEST

/* Waits until the fd is readable. Returns how many completions there were, perhaps none. */
static unsigned await_completions(int fd)
{
	struct timerhub_journal_completion completion;
	unsigned count = 0;

	expect(fd_readable_within(fd, ARRIVES));
	while (timerhub_journal_completions(journal, &completion, 1) > 0)
		count++;
	return count;
}

/* By the records of takes, which nobody waits for. */
START_TEST(submit_is_told_when_there_is_room_again)
{
	struct timerhub_journal_config config = {
		.size = sizeof(config), .segment_bytes = 4096, .data_max = 100, .tasks_max = 200
	};
	static struct timerhub_journal_task tasks[200];
	unsigned done = 0;
	int fd, result;

	begin(&config);
	fd = timerhub_journal_completion_fd(journal);
	for (unsigned i = 0; i < COUNT_OF(tasks); i++)
		(void)put(0, "x");
	expect_eq(timerhub_journal_take_many(journal, tasks, COUNT_OF(tasks), 0), COUNT_OF(tasks));
	for (unsigned i = 0; i < COUNT_OF(tasks); i++) {
		struct timerhub_journal_change change = { .op = TIMERHUB_JOURNAL_DONE,
			                                  .task = &tasks[i] };

		while ((result = timerhub_journal_submit(journal, &change, 1, i)) == -EAGAIN)
			done += await_completions(fd);
		expect_eq(result, 0);
	}
	while (done < COUNT_OF(tasks))
		done += await_completions(fd);
	end();
}
END_TEST

/* The directory is in use: -EBUSY, or -EINVAL for a bad config. */
static int open_with(uint64_t segment_bytes, uint32_t data_max)
{
	struct timerhub_journal_config config = small;
	struct timerhub_journal *other;

	config.segment_bytes = segment_bytes;
	config.data_max = data_max;
	return timerhub_journal_open(&other, dir, &config);
}

START_TEST(sizes_at_their_limits_are_accepted)
{
	begin(&small);
	expect(open_with(4096, 1024) == -EBUSY);
	expect(open_with(4095, 1024) == -EINVAL);
	expect(open_with(UINT64_C(4) << 30, 16 << 20) == -EBUSY);
	expect(open_with((UINT64_C(4) << 30) + 1, 16 << 20) == -EINVAL);
	expect(open_with(UINT64_C(4) << 30, (16 << 20) + 1) == -EINVAL);
	/* the header and one record of the largest size */
	expect(open_with(64 + 56 + 8 + 255 + 8001, 8001) == -EBUSY);
	expect(open_with(64 + 56 + 8 + 255 + 8000, 8001) == -EINVAL);
	end();
}
END_TEST

START_TEST(misuse_of_open_is_answered)
{
	struct timerhub_journal_config config = small;
	struct timerhub_journal *other = (void *)1;

	begin(&small);
	expect(timerhub_journal_open(NULL, dir, NULL) == -EINVAL);
	expect(timerhub_journal_open(&other, NULL, NULL) == -EINVAL);
	expect(timerhub_journal_open(&other, "/nonexistent", NULL) == -ENOENT);
	expect(timerhub_journal_open(&other, "/dev/null", NULL) == -ENOTDIR);
	expect(timerhub_journal_open(&other, dir, NULL) == -EBUSY);
	config.flags = 1;
	expect(timerhub_journal_open(&other, dir, &config) == -EINVAL);
	config = small;
	config.reserved = 1;
	expect(timerhub_journal_open(&other, dir, &config) == -EINVAL);
	config = small;
	config.size = 31;
	expect(timerhub_journal_open(&other, dir, &config) == -EINVAL);
	expect(other == (void *)1);
	end();
}
END_TEST

START_TEST(misuse_of_commit_and_asking_is_answered)
{
	struct timerhub_journal_task task = { .id = 12345, .delivery = 1 };
	struct timerhub_journal_change change = { .op = 0 };
	struct timerhub_journal_info info;

	begin(&small);
	expect(timerhub_journal_commit(journal, &change, 1) == -EINVAL);
	change = (struct timerhub_journal_change){ .op = TIMERHUB_JOURNAL_PUT, .key_len = 1 };
	expect(timerhub_journal_commit(journal, &change, 1) == -EINVAL);
	change = (struct timerhub_journal_change){ .op = TIMERHUB_JOURNAL_DONE };
	expect(timerhub_journal_commit(journal, &change, 1) == -EINVAL);
	change.task = &task;
	change.key = "k";
	change.key_len = 1;
	expect(timerhub_journal_commit(journal, &change, 1) == -EINVAL);
	expect_eq(timerhub_journal_commit(journal, NULL, 0), 0);
	expect_eq(timerhub_journal_completions(journal, NULL, 0), 0);
	expect(timerhub_journal_take_many(NULL, &task, 1, 0) == -EINVAL);
	expect(timerhub_journal_take_many(journal, &task, UINT32_MAX, 0) == -EINVAL);
	expect(timerhub_journal_take_many(journal, &task, 0, 0) == -EINVAL);
	expect(timerhub_journal_peek(journal, 1, &info, NULL, 1) == -EINVAL);
	expect(timerhub_journal_peek_key(journal, NULL, 1, &info, NULL, 0) == -EINVAL);
	expect(timerhub_journal_check(dir, NULL) == -EINVAL);
	expect(timerhub_journal_backup(NULL, dir) == -EINVAL);
	end();
}
END_TEST

START_TEST(misuse_is_answered)
{
	struct timerhub_journal_report report;
	struct timerhub_journal_change rare = {
		.op = TIMERHUB_JOURNAL_PUT,
		.interval_ns = UINT64_C(1) << 63,
	};
	struct timerhub_journal_task task = { .id = 12345 };
	char data[1001] = { 0 };
	uint64_t id;

	begin(&small);
	expect(timerhub_journal_put(NULL, 0, 0, NULL, 0, NULL) == -EINVAL);
	expect(timerhub_journal_put(journal, 0, 2, NULL, 0, NULL) == -EINVAL);
	expect(timerhub_journal_put(journal, 0, 0, NULL, 1, NULL) == -EINVAL);
	expect(timerhub_journal_put(journal, 0, 0, data, 1001, NULL) == -EMSGSIZE);
	expect(timerhub_journal_put(journal, UINT64_MAX - 1, 0, NULL, 0, NULL) == -ERANGE);
	expect(timerhub_journal_put(journal, UINT64_C(1) << 63, TIMERHUB_ABSOLUTE, NULL, 0, NULL) ==
	       -ERANGE);
	expect(timerhub_journal_put(journal, (UINT64_C(1) << 63) - 1, 0, NULL, 0, NULL) == -ERANGE);
	expect(timerhub_journal_move(journal, 1, UINT64_C(1) << 63, 0) == -ERANGE);
	expect(timerhub_journal_commit(journal, &rare, 1) == -ERANGE);
	expect(timerhub_journal_commit(NULL, &rare, 1) == -EINVAL);
	expect(timerhub_journal_commit(journal, NULL, 1) == -EINVAL);
	expect(timerhub_journal_cancel(journal, 0) == -ENOENT);
	expect(timerhub_journal_cancel_key(journal, "k", 0) == -EINVAL);
	expect(timerhub_journal_move_key(journal, "k", 0, 0, 0) == -EINVAL);
	expect(timerhub_journal_find(NULL, "k", 1, &id) == -EINVAL);
	expect(timerhub_journal_find(journal, NULL, 1, &id) == -EINVAL);
	expect(timerhub_journal_find(journal, "k", 0, &id) == -EINVAL);
	expect(timerhub_journal_find(journal, "k", 1, NULL) == -EINVAL);
	expect(timerhub_journal_done(journal, NULL) == -EINVAL);
	expect(timerhub_journal_done(journal, &task) == -EINVAL); /* `task` names no delivery */
	task.delivery = 1;
	expect(timerhub_journal_done(journal, &task) == -ENOENT);
	expect(timerhub_journal_take(journal, NULL, 0) == -EINVAL);
	expect(timerhub_journal_touch(NULL, &task, 0) == -EINVAL);
	expect(timerhub_journal_touch(journal, NULL, 0) == -EINVAL);
	expect(timerhub_journal_release(NULL, &task) == -EINVAL);
	expect(timerhub_journal_release(journal, NULL) == -EINVAL);
	expect(timerhub_journal_release(journal, &task) == -ENOENT);
	expect(timerhub_journal_retry(journal, NULL, 0) == -EINVAL);
	expect(timerhub_journal_park(journal, NULL, 0) == -EINVAL);
	expect(timerhub_journal_each(journal, NULL, NULL) == -EINVAL);
	expect(timerhub_journal_peek(journal, 1, NULL, NULL, 0) == -EINVAL);
	expect(timerhub_journal_completions(journal, NULL, 1) == -EINVAL);
	expect(timerhub_journal_completions(NULL, NULL, 0) == -EINVAL);
	expect(timerhub_journal_completion_fd(NULL) == -EINVAL);
	expect(timerhub_journal_backup(journal, NULL) == -EINVAL);
	expect(timerhub_journal_fd(NULL) == -EINVAL);
	expect(timerhub_journal_stats(journal, NULL) == -EINVAL);
	expect(timerhub_journal_check(NULL, &report) == -EINVAL);
	timerhub_journal_close(NULL);
	end();
}
END_TEST

START_TEST(config_of_a_later_version_is_taken_if_it_asks_for_nothing_new)
{
	union {
		struct timerhub_journal_config config;
		unsigned char bytes[8192];
	} later = { .config = small };

	new_dir();
	later.config.size = sizeof(later.config) + 16;
	expect_eq(timerhub_journal_open(&journal, dir, &later.config), 0);
	timerhub_journal_close(journal);
	later.bytes[sizeof(later.config) + 15] = 1;
	expect(timerhub_journal_open(&journal, dir, &later.config) == -E2BIG);
	later.bytes[sizeof(later.config) + 15] = 0;
	later.config.size = sizeof(later);
	expect(timerhub_journal_open(&journal, dir, &later.config) == -E2BIG);
	remove_dir();
}
END_TEST

static bool are_zero(const uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (words[i] != 0)
			return false;
	return true;
}

/* Reserved fields of outputs become 0, whatever was there. */
START_TEST(room_to_grow_is_written_as_zero)
{
	struct timerhub_journal_change put = { .op = TIMERHUB_JOURNAL_PUT };
	struct timerhub_journal_completion completion;
	struct timerhub_journal_report report;
	struct timerhub_journal_stats now;
	struct timerhub_journal_info info;
	struct timerhub_journal_task task;

	memset(&completion, 0xff, sizeof(completion));
	memset(&report, 0xff, sizeof(report));
	memset(&now, 0xff, sizeof(now));
	memset(&info, 0xff, sizeof(info));
	memset(&task, 0xff, sizeof(task));
	begin(&small);
	expect_eq(timerhub_journal_submit(journal, &put, 1, 7), 0);
	while (timerhub_journal_completions(journal, &completion, 1) == 0)
		sleep_ns(MS);
	expect_eq(completion.reserved, 0);
	expect_eq(timerhub_journal_peek(journal, completion.id, &info, NULL, 0), 0);
	expect(are_zero(info.reserved, COUNT_OF(info.reserved)));
	expect_eq(timerhub_journal_take(journal, &task, UINT64_MAX), 1);
	expect(are_zero(task.reserved, COUNT_OF(task.reserved)));
	expect_eq(timerhub_journal_stats(journal, &now), 0);
	expect(are_zero(now.reserved, COUNT_OF(now.reserved)));
	expect_eq(timerhub_journal_check(dir, &report), 0);
	expect(are_zero(report.reserved, COUNT_OF(report.reserved)));
	end();
}
END_TEST

START_TEST(change_that_says_what_this_version_does_not_know_is_refused)
{
	struct timerhub_journal_change change = { .op = TIMERHUB_JOURNAL_PUT };
	struct timerhub_journal_task task;

	begin(&small);
	for (unsigned i = 0; i < COUNT_OF(change.reserved); i++) {
		change.reserved[i] = 1;
		expect(timerhub_journal_commit(journal, &change, 1) == -EINVAL);
		expect(change.result == -EINVAL);
		expect(timerhub_journal_submit(journal, &change, 1, 0) == -EINVAL);
		change.reserved[i] = 0;
	}
	expect_eq(timerhub_journal_commit(journal, &change, 1), 0);
	expect_eq(timerhub_journal_take(journal, &task, UINT64_MAX), 1);
	for (uint32_t op = TIMERHUB_JOURNAL_CANCEL; op <= TIMERHUB_JOURNAL_PARK; op++) {
		change = (struct timerhub_journal_change){ .op = op,
			                                   .flags = TIMERHUB_ABSOLUTE,
			                                   .task = &task };
		if (op == TIMERHUB_JOURNAL_MOVE)
			continue;
		expect(timerhub_journal_commit(journal, &change, 1) == -EINVAL);
	}
	expect_eq(timerhub_journal_done(journal, &task), 0);
	end();
}
END_TEST

static int visit_none(void *context, const struct timerhub_journal_info *info)
{
	(void)context;
	(void)info;
	return 1;
}

/* Every call in a forked child is refused. */
static void child_is_told(uint64_t id, struct timerhub_journal_task *task)
{
	struct timerhub_journal_change change = { .op = TIMERHUB_JOURNAL_PUT };
	struct timerhub_journal_completion completion;
	struct timerhub_journal_stats now;
	struct timerhub_journal_info info;

	expect(timerhub_journal_put(journal, 0, 0, NULL, 0, NULL) == -EOWNERDEAD);
	expect(timerhub_journal_put_key(journal, "k", 1, 0, 0, NULL, 0, NULL) == -EOWNERDEAD);
	expect(timerhub_journal_cancel(journal, id) == -EOWNERDEAD);
	expect(timerhub_journal_cancel_key(journal, "k", 1) == -EOWNERDEAD);
	expect(timerhub_journal_move(journal, id, 0, 0) == -EOWNERDEAD);
	expect(timerhub_journal_move_key(journal, "k", 1, 0, 0) == -EOWNERDEAD);
	expect(timerhub_journal_take(journal, task, 0) == -EOWNERDEAD);
	expect(timerhub_journal_take_many(journal, task, 1, 0) == -EOWNERDEAD);
	expect(timerhub_journal_done(journal, task) == -EOWNERDEAD);
	expect(timerhub_journal_retry(journal, task, 0) == -EOWNERDEAD);
	expect(timerhub_journal_park(journal, task, 1) == -EOWNERDEAD);
	expect(timerhub_journal_revive(journal, id, 0, 0) == -EOWNERDEAD);
	expect(timerhub_journal_touch(journal, task, 0) == -EOWNERDEAD);
	expect(timerhub_journal_release(journal, task) == -EOWNERDEAD);
	expect(timerhub_journal_commit(journal, &change, 1) == -EOWNERDEAD);
	expect(timerhub_journal_submit(journal, &change, 1, 0) == -EOWNERDEAD);
	expect(timerhub_journal_completions(journal, &completion, 1) == -EOWNERDEAD);
	expect(timerhub_journal_completion_fd(journal) == -EOWNERDEAD);
	expect(timerhub_journal_find(journal, "k", 1, &id) == -EOWNERDEAD);
	expect(timerhub_journal_peek(journal, id, &info, NULL, 0) == -EOWNERDEAD);
	expect(timerhub_journal_peek_key(journal, "k", 1, &info, NULL, 0) == -EOWNERDEAD);
	expect(timerhub_journal_each(journal, visit_none, NULL) == -EOWNERDEAD);
	expect(timerhub_journal_backup(journal, "/nonexistent") == -EOWNERDEAD);
	expect(timerhub_journal_fd(journal) == -EOWNERDEAD);
	expect(timerhub_journal_stats(journal, &now) == -EOWNERDEAD);
}

START_TEST(child_of_fork_is_told_and_harms_nothing)
{
	struct timerhub_journal_task task = { 0 };
	unsigned files;
	uint64_t id;
	pid_t child;

	files = process_fd_count();
	begin(NULL);
	id = put(0, "parent's");
	expect_le(0, timerhub_journal_completion_fd(journal));
	child = fork();
	if (child == 0) {
		struct timerhub_journal *other;

		child_is_told(id, &task);
		/* without effect on either journal */
		timerhub_journal_stop(journal);
		expect(timerhub_journal_open(&other, dir, NULL) == -EBUSY);
		timerhub_journal_close(journal);
		expect_eq(process_fd_count(), files);
		/* The parent still holds the lock, so open returns -EBUSY. */
		_exit(timerhub_journal_open(&other, dir, NULL) == -EBUSY ? 0 : 1);
	}
	child_ends_well(child);
	task = take();
	expect_eq(task.id, id);
	expect_eq(timerhub_journal_done(journal, &task), 0);
	end();
}
END_TEST

/* ---- threads ---- */

#define PUTTERS 8
#define TAKERS 4

static atomic_uint puts_left, unfinished, twice, early;
static atomic_uchar seen[100000];

static void *putter(void *argument)
{
	struct dice dice = dice_new((uint64_t)(uintptr_t)argument);

	while (atomic_fetch_sub(&puts_left, 1) - 1 < UINT32_MAX / 2) {
		uint64_t id = 0;

		expect_eq(
			timerhub_journal_put(journal, dice_below(&dice, 30 * MS), 0, &dice, 8, &id),
			0);
		/* a third; a taken task can't be */
		if (dice_one_in(&dice, 3)) {
			int result = timerhub_journal_cancel(journal, id);

			expect(result == 0 || result == -EBUSY || result == -ENOENT);
			if (result == 0) {
				twice += atomic_fetch_add(&seen[id], 1) > 0;
				unfinished--;
			}
		}
	}
	return NULL;
}

static void *taker(void *argument)
{
	struct timerhub_journal_task task;

	(void)argument;
	while (unfinished > 0) {
		int result = timerhub_journal_take(journal, &task, 50 * MS);

		expect(result >= 0);
		if (result == 0)
			continue;
		early += task.due_ns > wall_ns();
		if (task.attempts == 1 && task.id % 5 == 0) {
			expect_eq(timerhub_journal_retry(journal, &task, MS), 0);
			continue;
		}
		expect_eq(timerhub_journal_done(journal, &task), 0);
		twice += atomic_fetch_add(&seen[task.id], 1) > 0;
		unfinished--;
	}
	return NULL;
}

static void run_threads(unsigned puts)
{
	pthread_t threads[PUTTERS + TAKERS];

	puts_left = unfinished = puts;
	for (uintptr_t i = 0; i < PUTTERS + TAKERS; i++)
		thread_start(&threads[i], i < PUTTERS ? putter : taker, (void *)(i + 1));
	for (unsigned i = 0; i < PUTTERS + TAKERS; i++)
		thread_join(threads[i]);
	expect_eq(twice, 0);
	expect_eq(early, 0);
	for (unsigned i = 1; i <= puts; i++)
		expect_eq(seen[i], 1);
	expect_eq(stats().tasks, 0);
}

START_TEST(every_task_ends_once_under_many_threads)
{
	struct timerhub_journal_stats now;

	begin(&small);
	run_threads(scaled(4000));
	now = stats();
	expect_eq(now.put, now.done + now.cancelled);
	expect_lt(now.syncs, now.put + now.done + now.cancelled + now.retried);
	expect_le(now.disk_bytes, 2 * now.live_bytes + 2 * small.segment_bytes);
	timerhub_journal_close(journal);
	expect_eq(timerhub_journal_open(&journal, dir, &small), 0);
	expect_eq(stats().tasks, 0);
	end();
}
END_TEST

START_TEST(journal_serves_where_io_uring_is_refused)
{
	refuse_calls(SCMP_SYS(io_uring_setup), EPERM);
	begin(&small);
	run_threads(scaled(1000));
	end();
}
END_TEST

/* Refused to the keeper when it begins, or not. */
START_TEST(a_trapped_name_of_the_keeper_is_done_without)
{
	const struct scmp_arg_cmp only = { .op = SCMP_CMP_EQ, .datum_a = PR_SET_NAME };
	uint64_t id;

	trap_calls_if(SCMP_SYS(prctl), ENOSYS, &only);
	begin(&small);
	id = put(0, "data");
	expect_eq(take().id, id);
	expect_cmp(trap_count, >, 0);
	end();
}
END_TEST

/* A SIGSYS handler's answer is the disk's error, to a caller that writes and to the keeper. */
START_TEST(a_trapped_sync_is_a_sync_that_fails)
{
	struct timerhub_journal_completion completion;
	struct pollfd fd = { .events = POLLIN };

	begin(&small);
	fd.fd = timerhub_journal_completion_fd(journal);
	trap_calls_if(SCMP_SYS(fdatasync), ENOSYS, NULL);
	if (_i == 0) {
		expect_eq(timerhub_journal_put(journal, 0, 0, "data", 4, NULL), -EIO);
	} else {
		expect_eq(submit_put(1, NULL), 0);
		expect_eq(poll(&fd, 1, (int)(ARRIVES / MS)), 1);
		expect_eq(timerhub_journal_completions(journal, &completion, 1), 1);
		expect_eq(completion.result, -EIO);
	}
	expect_cmp(trap_count, >, 0);
	end();
}
END_TEST

/* EFBIG comes with SIGXFSZ, which would kill. */
START_TEST(a_limit_of_file_sizes_refuses_and_does_not_kill)
{
	const struct rlimit limit = { .rlim_cur = 100000, .rlim_max = RLIM_INFINITY };
	static const char data[1000];
	int result = 0;

	begin(NULL);
	expect_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	while (result == 0)
		result = timerhub_journal_put(journal, 0, 0, data, sizeof(data), NULL);
	expect(result == -EFBIG);
	expect_le(50, stats().tasks);
	expect(timerhub_journal_put(journal, 0, 0, data, sizeof(data), NULL) == -EFBIG);
	expect_eq(stats().failed, 0);
	end();
}
END_TEST

/* How often the thread fell asleep, or UINT64_MAX while it is awake. */
static uint64_t sleeps_of(const char *thread)
{
	uint64_t sleeps = UINT64_MAX;
	bool asleep = false;
	char text[300];
	FILE *file;

	(void)snprintf(text, sizeof(text), "/proc/self/task/%s/status", thread);
	file = fopen(text, "r");
	expect(file != NULL);
	while (fgets(text, sizeof(text), file)) {
		asleep |= strncmp(text, "State:\tS", 8) == 0;
		(void)sscanf(text, "voluntary_ctxt_switches: %" SCNu64, &sleeps);
	}
	(void)fclose(file);
	return asleep ? sleeps : UINT64_MAX;
}

/* Of all other threads, or UINT64_MAX. */
static uint64_t sleeps_of_others(void)
{
	DIR *threads = opendir("/proc/self/task");
	const struct dirent *entry;
	uint64_t sum = 0;

	expect(threads != NULL);
	while (sum != UINT64_MAX && (entry = readdir(threads))) {
		uint64_t sleeps;

		if (entry->d_name[0] == '.' || atoi(entry->d_name) == getpid())
			continue;
		sleeps = sleeps_of(entry->d_name);
		sum = sleeps == UINT64_MAX ? UINT64_MAX : sum + sleeps;
	}
	(void)closedir(threads);
	return sum;
}

/*
 * Until all others sleep at one instant: asleep at two checks and not fallen asleep between. Nobody
 * sleeps with a lock held, so they are in their final waits.
 */
static void await_sleep_of_others(void)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES, sleeps, before;

	do {
		expect_lt(monotonic_ns(), until_ns);
		sleep_ns(MS);
		before = sleeps_of_others();
		sleeps = sleeps_of_others();
	} while (sleeps == UINT64_MAX || sleeps != before);
}

static void *blocked_taker(void *argument)
{
	struct timerhub_journal_task task;

	(void)argument;
	expect(timerhub_journal_take(journal, &task, UINT64_MAX) == -ESHUTDOWN);
	return NULL;
}

START_TEST(close_sends_blocked_takers_away)
{
	pthread_t threads[TAKERS];

	begin(NULL);
	for (unsigned i = 0; i < TAKERS; i++)
		thread_start(&threads[i], blocked_taker, NULL);
	/* no call may begin after the close has begun */
	await_sleep_of_others();
	timerhub_journal_close(journal);
	for (unsigned i = 0; i < TAKERS; i++)
		thread_join(threads[i]);
	remove_dir();
}
END_TEST

START_TEST(stop_sends_takers_away_and_is_for_ever)
{
	struct timerhub_journal_task task;
	pthread_t threads[TAKERS];

	begin(NULL);
	for (unsigned i = 0; i < TAKERS; i++)
		thread_start(&threads[i], blocked_taker, NULL);
	await_sleep_of_others();
	timerhub_journal_stop(journal);
	for (unsigned i = 0; i < TAKERS; i++)
		thread_join(threads[i]);
	/* put after the stop, it waits for the next open, whenever it is due */
	expect_eq(timerhub_journal_put(journal, 1, TIMERHUB_ABSOLUTE, "late", 4, NULL), 0);
	expect_eq(timerhub_journal_take(journal, &task, 0), -ESHUTDOWN);
	expect_eq(timerhub_journal_take_many(journal, &task, 1, UINT64_MAX), -ESHUTDOWN);
	timerhub_journal_stop(journal);
	expect_eq(timerhub_journal_take(journal, &task, UINT64_MAX), -ESHUTDOWN);
	timerhub_journal_close(journal);
	expect_eq(timerhub_journal_open(&journal, dir, NULL), 0);
	expect_eq(take().data_len, 4);
	end();
	timerhub_journal_stop(NULL);
}
END_TEST

START_TEST(stop_hands_out_what_is_due_first)
{
	struct timerhub_journal_task tasks[2];

	begin(NULL);
	for (unsigned i = 0; i < 5; i++)
		put(0, "due");
	put(HOUR, "not due");
	timerhub_journal_stop(journal);
	expect(fd_readable_within(timerhub_journal_fd(journal), ARRIVES));
	expect_eq(timerhub_journal_take_many(journal, tasks, 2, UINT64_MAX), 2);
	expect_le(tasks[0].due_ns, tasks[1].due_ns);
	expect_eq(timerhub_journal_take_many(journal, tasks, 2, UINT64_MAX), 2);
	/* due after the stop, so nobody gets it */
	expect_eq(timerhub_journal_retry(journal, &tasks[0], 0), 0);
	expect_eq(timerhub_journal_take_many(journal, tasks, 2, UINT64_MAX), 1);
	expect_eq(timerhub_journal_done(journal, &tasks[0]), 0);
	expect_eq(timerhub_journal_take(journal, tasks, UINT64_MAX), -ESHUTDOWN);
	/* After a stop the fd stays readable. */
	expect(fd_readable_within(timerhub_journal_fd(journal), ARRIVES));
	end();
}
END_TEST

static atomic_uint worked; /* number of tasks that the workers have done before the stop */

static void *worker_until_stop(void *argument)
{
	struct timerhub_journal_task task;
	int result;

	(void)argument;
	while ((result = timerhub_journal_take(journal, &task, UINT64_MAX)) == 1) {
		expect_eq(timerhub_journal_done(journal, &task), 0);
		atomic_fetch_add(&worked, 1);
	}
	expect_eq(result, -ESHUTDOWN);
	return NULL;
}

/* Also a worker between its done and its next take. */
START_TEST(stop_join_close_ends_busy_workers)
{
	pthread_t threads[TAKERS];
	unsigned count = 0;

	new_dir();
	atomic_store(&worked, 0);
	for (unsigned round = 0; round < scaled(30); round++) {
		unsigned more = round % 7;

		expect_eq(timerhub_journal_open(&journal, dir, &small), 0);
		for (unsigned i = 0; i < TAKERS; i++)
			thread_start(&threads[i], worker_until_stop, NULL);
		for (unsigned i = 0; i < more; i++)
			put(0, "work");
		count += more;
		timerhub_journal_stop(journal);
		for (unsigned i = 0; i < TAKERS; i++)
			thread_join(threads[i]);
		/* all were due at the stop */
		expect_eq(atomic_load(&worked), count);
		expect_eq(stats().tasks, 0);
		timerhub_journal_close(journal);
	}
	remove_dir();
}
END_TEST

static void *one_taker(void *argument)
{
	struct timerhub_journal_task task;

	(void)argument;
	/* a timeout would hide a lost wake-up */
	expect_eq(timerhub_journal_take(journal, &task, UINT64_MAX), 1);
	return NULL;
}

/* A task for each of `count` takers, each gets one; with `cancelled`, all are cancelled first. */
static void each_taker_gets_one(unsigned count, bool cancelled, uint64_t delay_ns)
{
	pthread_t threads[16];

	expect_le(count, COUNT_OF(threads));
	begin(NULL);
	for (unsigned i = 0; i < count; i++)
		thread_start(&threads[i], one_taker, NULL);
	await_sleep_of_others();
	for (unsigned i = 0; i < count && cancelled; i++)
		expect_eq(pthread_cancel(threads[i]), 0);
	for (unsigned i = 0; i < count; i++)
		(void)put(delay_ns, "for one");
	for (unsigned i = 0; i < count; i++)
		thread_join(threads[i]);
	expect_eq(stats().taken, count);
	end();
}

/*
 * One taker sleeps on the timer, and wakes the next when it returns. So a cancellation must wait
 * until take() has returned.
 */
START_TEST(cancelled_thread_leaves_take_first)
{
	each_taker_gets_one(2, true, 0);
}
END_TEST

START_TEST(each_of_many_blocked_takers_gets_one)
{
	each_taker_gets_one(16, false, 20 * MS);
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("calls", argc, argv);
	tests_add(a_full_journal_lets_the_end_of_a_task_put_the_next, 60);
	tests_add(answer_to_a_delivery_before_the_reopen_changes_nothing, 60);
	tests_add(submit_is_told_when_there_is_room_again, 60);
	tests_add(data_stays_its_takers_though_another_ends_the_task, 60);
	tests_add(touch_without_leases_changes_nothing, 60);
	tests_add(key_names_one_live_task_also_after_a_restart, 60);
	tests_add(of_many_puts_of_one_key_one_wins, 60);
	tests_add(commit_makes_all_changes_or_none, 60);
	tests_add(key_is_free_in_a_commit_only_if_its_task_ends_there, 60);
	tests_add(put_makes_a_periodic_task, 60);
	tests_add(period_is_said_once_and_is_a_length, 60);
	tests_add(periodic_task_ends_if_its_next_period_is_beyond_all_time, 60);
	tests_add(one_thread_keeps_many_puts_in_flight, 60);
	tests_add(completion_fd_is_one_fd_for_the_journals_life, 60);
	tests_add_loop(no_descriptor_of_a_journal_is_a_standard_stream, 60, 5);
	tests_add(submit_refuses_at_once_what_commit_would, 60);
	tests_add(each_task_is_told_in_order_of_time, 60);
	tests_add(task_that_ends_while_all_are_told_is_left_out, 60);
	tests_add(tasks_of_one_time_are_told_in_order_of_ids, 60);
	tests_add(statistics_tell_of_ages, 60);
	tests_add(bytes_of_all_data_are_bounded, 60);
	tests_add(lock_that_is_deleted_lets_no_second_writer_in, 60);
	tests_add(names_in_the_directory_are_not_trusted, 60);
	tests_add(directory_that_is_removed_ends_the_journal, 60);
	tests_add(check_of_a_journal_in_use_finds_it_whole, 60);
	tests_add(backup_of_a_journal_in_use_has_all_that_was_acknowledged, 60);
	tests_add(cancelled_thread_ends_its_backup_first, 60);
	tests_add(what_a_failed_backup_leaves_is_refused, 60);
	tests_add(segment_that_cannot_be_read_loses_none_of_many_tasks, 120);
	tests_add(fd_is_readable_just_while_a_task_is_due, 60);
	tests_add(a_full_journal_says_so_until_there_is_room, 60);
	tests_add(sizes_at_their_limits_are_accepted, 60);
	tests_add(misuse_of_open_is_answered, 60);
	tests_add(misuse_of_commit_and_asking_is_answered, 60);
	tests_add(misuse_is_answered, 60);
	tests_add(config_of_a_later_version_is_taken_if_it_asks_for_nothing_new, 60);
	tests_add(room_to_grow_is_written_as_zero, 60);
	tests_add(change_that_says_what_this_version_does_not_know_is_refused, 60);
	tests_add(child_of_fork_is_told_and_harms_nothing, 60);
	tests_add(every_task_ends_once_under_many_threads, 120);
	tests_add(a_trapped_name_of_the_keeper_is_done_without, 60);
	tests_add_loop(a_trapped_sync_is_a_sync_that_fails, 60, 2);
	tests_add(a_limit_of_file_sizes_refuses_and_does_not_kill, 60);
	tests_add(journal_serves_where_io_uring_is_refused, 120);
	tests_add(close_sends_blocked_takers_away, 60);
	tests_add(stop_sends_takers_away_and_is_for_ever, 60);
	tests_add(stop_hands_out_what_is_due_first, 60);
	tests_add(stop_join_close_ends_busy_workers, 60);
	tests_add(cancelled_thread_leaves_take_first, 60);
	tests_add(each_of_many_blocked_takers_gets_one, 60);
	return tests_run();
}
