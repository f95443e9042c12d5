/* SPDX-License-Identifier: MIT */
/*
 * The public calls, on a real directory, with real threads and the real clock. What can be held to
 * the nanosecond is in the other files, under a clock that is set.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <timerhub_journal.h>
#include <unistd.h>

#include <harness.h>

#define ARRIVES (20 * SEC)

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

	(void)snprintf(dir, sizeof(dir), "%.30s/journal-XXXXXX", base ? base : "/tmp");
	expect(mkdtemp(dir) != NULL);
}

static void remove_dir(void)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	expect_eq(system(command), 0);
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

static struct timerhub_task take(void)
{
	struct timerhub_task task = { 0 };

	expect_eq(timerhub_journal_take(journal, &task, ARRIVES), 1);
	expect_le(task.due_ns, wall_ns());
	return task;
}

static bool is_readable(void)
{
	struct pollfd fd = { .fd = timerhub_journal_fd(journal), .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

/* Nothing is due. The fd may have rung late for what is gone; who looks silences it. */
static void expect_silence(void)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;
	struct timerhub_task task;

	do {
		expect_eq(timerhub_journal_take(journal, &task, 0), 0);
		expect_lt(monotonic_ns(), until_ns);
	} while (is_readable());
}

START_TEST(tasks_come_in_order_and_not_before_their_time)
{
	static const unsigned order[3] = { 2, 0, 1 };
	uint64_t base_ns = wall_ns(), ids[3];

	begin(NULL);
	/* From one instant: a slow disk must not change their order. */
	for (unsigned i = 0; i < 3; i++)
		expect_eq(timerhub_journal_put(journal, base_ns + (order[i] + 1) * 20 * MS,
		                               TIMERHUB_ABSOLUTE, NULL, 0, &ids[order[i]]),
		          0);
	for (unsigned i = 0; i < 3; i++) {
		struct timerhub_task task = take();

		expect_eq(task.id, ids[i]);
		expect_eq(task.attempts, 1);
		expect_eq(timerhub_journal_done(journal, task.id), 0);
		expect(timerhub_journal_done(journal, task.id) == -ENOENT);
	}
	expect_eq(stats().tasks, 0);
	end();
}
END_TEST

START_TEST(tasks_survive_close_and_open)
{
	struct timerhub_task task;
	uint64_t kept, taken;

	begin(NULL);
	kept = put(0, "kept");
	taken = put(0, "taken and not done");
	(void)put(HOUR, "later");
	expect_eq(timerhub_journal_cancel(journal, put(HOUR, "cancelled")), 0);
	task = take();
	expect_eq(task.id, kept);
	expect_eq(timerhub_journal_done(journal, kept), 0);
	expect_eq(take().id, taken);
	timerhub_journal_close(journal);
	expect_eq(timerhub_journal_open(&journal, dir, NULL), 0);
	expect_eq(stats().tasks, 2);
	expect_eq(stats().recovered, 2);
	task = take();
	expect_eq(task.id, taken);
	expect_eq(task.attempts, 2);
	expect(task.data_len == 18 && memcmp(task.data, "taken and not done", 18) == 0);
	expect_eq(timerhub_journal_take(journal, &task, 0), 0);
	end();
}
END_TEST

START_TEST(a_task_taken_is_its_takers)
{
	struct timerhub_task task;

	begin(NULL);
	(void)put(0, "mine");
	task = take();
	expect(timerhub_journal_cancel(journal, task.id) == -EBUSY);
	expect(timerhub_journal_move(journal, task.id, 0, 0) == -EBUSY);
	expect_eq(timerhub_journal_retry(journal, task.id, HOUR), 0);
	expect(timerhub_journal_retry(journal, task.id, 0) == -ENOENT);
	expect_eq(timerhub_journal_take(journal, &task, 0), 0);
	expect_eq(timerhub_journal_move(journal, task.id, 0, 0), 0);
	task = take();
	expect_eq(task.attempts, 2);
	expect_eq(timerhub_journal_done(journal, task.id), 0);
	expect(timerhub_journal_move(journal, task.id, 0, 0) == -ENOENT);
	end();
}
END_TEST

START_TEST(a_lease_that_is_over_gives_the_task_back)
{
	struct timerhub_journal_config config = small;
	uint64_t begin_ns, leases_over, id;

	config.lease_ns = 50 * MS;
	begin(&config);
	id = put(0, "slow");
	begin_ns = monotonic_ns();
	for (unsigned attempt = 1; attempt <= 3; attempt++)
		expect_eq(take().attempts, attempt);
	expect_le(2 * config.lease_ns, monotonic_ns() - begin_ns);
	/* Two for sure, each counted once; this thread may have stalled beyond the third. */
	leases_over = stats().leases_over;
	expect(leases_over == 2 || leases_over == 3);
	/* Who comes too late may still say that it is done. */
	while (stats().leases_over < 3)
		sleep_ns(MS);
	expect_eq(timerhub_journal_done(journal, id), 0);
	expect_eq(stats().leases_over, 3);
	expect_eq(stats().tasks, 0);
	end();
}
END_TEST

START_TEST(fd_is_readable_just_while_a_task_is_due)
{
	struct pollfd fd = { .events = POLLIN };
	struct timerhub_task task;
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
	expect_eq(timerhub_journal_retry(journal, id, 30 * MS), 0);
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
	/* What is there is never left out, whatever the limit is now. */
	timerhub_journal_close(journal);
	config.tasks_max = 1;
	expect_eq(timerhub_journal_open(&journal, dir, &config), 0);
	expect_eq(stats().tasks, 3);
	expect(timerhub_journal_put(journal, 0, 0, NULL, 0, NULL) == -EAGAIN);
	end();
}
END_TEST

START_TEST(misuse_is_answered)
{
	struct timerhub_journal_config config = small;
	struct timerhub_journal *other = (void *)1;
	struct timerhub_journal_report report;
	char data[1001] = { 0 };

	begin(&small);
	expect(timerhub_journal_open(NULL, dir, NULL) == -EINVAL);
	expect(timerhub_journal_open(&other, NULL, NULL) == -EINVAL);
	expect(timerhub_journal_open(&other, "/nonexistent", NULL) == -ENOENT);
	expect(timerhub_journal_open(&other, "/dev/null", NULL) == -ENOTDIR);
	expect(timerhub_journal_open(&other, dir, NULL) == -EBUSY);
	config.flags = 1;
	expect(timerhub_journal_open(&other, dir, &config) == -EINVAL);
	config = small;
	config.segment_bytes = 1000;
	expect(timerhub_journal_open(&other, dir, &config) == -EINVAL);
	config = small;
	config.data_max = 70000; /* more than a segment */
	expect(timerhub_journal_open(&other, dir, &config) == -EINVAL);
	config = small;
	config.size--;
	expect(timerhub_journal_open(&other, dir, &config) == -EINVAL);
	expect(other == (void *)1);
	expect(timerhub_journal_put(NULL, 0, 0, NULL, 0, NULL) == -EINVAL);
	expect(timerhub_journal_put(journal, 0, 2, NULL, 0, NULL) == -EINVAL);
	expect(timerhub_journal_put(journal, 0, 0, NULL, 1, NULL) == -EINVAL);
	expect(timerhub_journal_put(journal, 0, 0, data, 1001, NULL) == -EMSGSIZE);
	expect(timerhub_journal_put(journal, UINT64_MAX - 1, 0, NULL, 0, NULL) == -ERANGE);
	expect(timerhub_journal_put(journal, UINT64_C(1) << 63, TIMERHUB_ABSOLUTE, NULL, 0, NULL) ==
	       -ERANGE);
	expect(timerhub_journal_cancel(journal, 0) == -ENOENT);
	expect(timerhub_journal_done(journal, 12345) == -ENOENT);
	expect(timerhub_journal_take(journal, NULL, 0) == -EINVAL);
	expect(timerhub_journal_fd(NULL) == -EINVAL);
	expect(timerhub_journal_stats(journal, NULL) == -EINVAL);
	expect(timerhub_journal_check(NULL, &report) == -EINVAL);
	timerhub_journal_close(NULL);
	end();
}
END_TEST

START_TEST(check_looks_and_changes_nothing)
{
	struct timerhub_journal_report report;

	begin(NULL);
	(void)put(HOUR, "one");
	timerhub_journal_close(journal);
	for (unsigned i = 0; i < 2; i++) {
		expect_eq(timerhub_journal_check(dir, &report), 0);
		expect(report.tasks == 1 && report.records == 2 && report.segments == 1);
		expect(report.fault == NULL && report.torn_bytes == 0);
	}
	expect_eq(timerhub_journal_open(&journal, dir, NULL), 0);
	end();
}
END_TEST

START_TEST(child_of_fork_is_told_and_harms_nothing)
{
	struct timerhub_task task;
	uint64_t id;
	int status = 0;
	pid_t child;

	begin(NULL);
	id = put(0, "parent's");
	child = fork();
	if (child == 0) {
		struct timerhub_journal *other;
		struct timerhub_journal_stats now;
		bool good = timerhub_journal_put(journal, 0, 0, NULL, 0, NULL) == -EOWNERDEAD &&
		            timerhub_journal_cancel(journal, id) == -EOWNERDEAD &&
		            timerhub_journal_move(journal, id, 0, 0) == -EOWNERDEAD &&
		            timerhub_journal_done(journal, id) == -EOWNERDEAD &&
		            timerhub_journal_retry(journal, id, 0) == -EOWNERDEAD &&
		            timerhub_journal_take(journal, &task, 0) == -EOWNERDEAD &&
		            timerhub_journal_fd(journal) == -EOWNERDEAD &&
		            timerhub_journal_stats(journal, &now) == -EOWNERDEAD &&
		            timerhub_journal_open(&other, dir, NULL) == -EBUSY;

		timerhub_journal_close(journal);
		/* The parent's lock is still held. */
		_exit(good && timerhub_journal_open(&other, dir, NULL) == -EBUSY ? 0 : 1);
	}
	expect_eq(waitpid(child, &status, 0), child);
	expect_eq(status, 0);
	expect_eq(take().id, id);
	expect_eq(timerhub_journal_done(journal, id), 0);
	end();
}
END_TEST

static pid_t fork_idle_child(void)
{
	pid_t child = fork();

	if (child == 0)
		for (;;)
			(void)pause();
	expect_lt(0, child);
	return child;
}

static void kill_child(pid_t child)
{
	expect_eq(kill(child, SIGKILL), 0);
	expect_eq(waitpid(child, NULL, 0), child);
}

START_TEST(child_that_lives_on_does_not_keep_the_journal_busy)
{
	pid_t child;

	begin(NULL);
	(void)put(HOUR, "kept");
	child = fork_idle_child();
	timerhub_journal_close(journal);
	expect_eq(timerhub_journal_open(&journal, dir, NULL), 0);
	expect_eq(stats().tasks, 1);
	kill_child(child);
	end();
}
END_TEST

START_TEST(child_that_lives_on_does_not_keep_the_journal_of_a_killed_parent_busy)
{
	pid_t parent, child = 0;
	int tell[2], status;

	new_dir();
	expect_eq(pipe(tell), 0);
	parent = fork();
	if (parent == 0) {
		expect_eq(timerhub_journal_open(&journal, dir, NULL), 0);
		(void)put(HOUR, "kept");
		child = fork_idle_child();
		expect_eq(write(tell[1], &child, sizeof(child)), sizeof(child));
		(void)raise(SIGKILL);
	}
	expect_eq(waitpid(parent, &status, 0), parent);
	expect_eq(read(tell[0], &child, sizeof(child)), sizeof(child));
	/* Not before the child has run: then it closes what it inherited. */
	while (timerhub_journal_open(&journal, dir, NULL) == -EBUSY)
		sleep_ns(MS);
	expect_eq(stats().tasks, 1);
	expect_eq(kill(child, SIGKILL), 0);
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
		/* A third is cancelled, if nobody has taken it before. */
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
	struct timerhub_task task;

	(void)argument;
	while (unfinished > 0) {
		int result = timerhub_journal_take(journal, &task, 50 * MS);

		expect(result >= 0);
		if (result == 0)
			continue;
		early += task.due_ns > wall_ns();
		if (task.attempts == 1 && task.id % 5 == 0) {
			expect_eq(timerhub_journal_retry(journal, task.id, MS), 0);
			continue;
		}
		expect_eq(timerhub_journal_done(journal, task.id), 0);
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

/* Is io_uring_setup() refused here, as in many containers? */
static bool is_uring_refused(void)
{
	char parameters[120] = { 0 };
	long ring = syscall(425, 1, parameters);

	if (ring >= 0)
		(void)close((int)ring);
	return ring < 0;
}

START_TEST(every_task_ends_once_under_many_threads)
{
	struct timerhub_journal_stats now;

	begin(&small);
	run_threads(scaled(4000));
	now = stats();
	expect_eq(now.put, now.done + now.cancelled);
	expect_eq(now.writer, is_uring_refused() ? TIMERHUB_JOURNAL_PLAIN : TIMERHUB_JOURNAL_URING);
	expect_lt(now.syncs, now.put + now.done + now.cancelled + now.retried);
	expect_le(now.disk_bytes, 2 * now.live_bytes + 2 * small.segment_bytes);
	timerhub_journal_close(journal);
	expect_eq(timerhub_journal_open(&journal, dir, &small), 0);
	expect_eq(stats().tasks, 0);
	end();
}
END_TEST

/* io_uring_setup() answers EPERM, as in many containers. */
static void refuse_uring(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	expect(filter != NULL);
	expect_eq(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), 425, 0), 0);
	expect_eq(seccomp_load(filter), 0);
	seccomp_release(filter);
}

START_TEST(plain_calls_serve_where_io_uring_is_refused)
{
	refuse_uring();
	begin(&small);
	run_threads(scaled(1000));
	expect_eq(stats().writer, TIMERHUB_JOURNAL_PLAIN);
	end();
}
END_TEST

/* How often this thread has gone to sleep; UINT64_MAX if it is not asleep. */
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

/* How often all the others have; UINT64_MAX if one of them is not asleep. */
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
 * Until all other threads sleep at the same instant: who was asleep twice and did not fall asleep
 * in between was so all the time. Nobody sleeps with a lock, so each is where it is to wait.
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
	struct timerhub_task task;

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
	/* No call may begin when it is being closed. */
	await_sleep_of_others();
	timerhub_journal_close(journal);
	for (unsigned i = 0; i < TAKERS; i++)
		thread_join(threads[i]);
	remove_dir();
}
END_TEST

static void *one_taker(void *argument)
{
	struct timerhub_task task;

	(void)argument;
	/* For ever: the end of a timeout would find what it was not woken for. */
	expect_eq(timerhub_journal_take(journal, &task, UINT64_MAX), 1);
	return NULL;
}

START_TEST(each_of_many_blocked_takers_gets_one)
{
	pthread_t threads[16];

	begin(NULL);
	for (unsigned i = 0; i < COUNT_OF(threads); i++)
		thread_start(&threads[i], one_taker, NULL);
	await_sleep_of_others();
	for (unsigned i = 0; i < COUNT_OF(threads); i++)
		(void)put(20 * MS, "for one");
	for (unsigned i = 0; i < COUNT_OF(threads); i++)
		thread_join(threads[i]);
	expect_eq(stats().taken, COUNT_OF(threads));
	end();
}
END_TEST

/* ---- a disk that is really full ---- */

static void write_filler(const char *path, size_t bytes)
{
	FILE *file = fopen(path, "w");
	static const char block[1024];

	expect(file != NULL);
	for (size_t i = 0; i < bytes / sizeof(block); i++)
		(void)fwrite(block, sizeof(block), 1, file);
	(void)fclose(file);
}

START_TEST(full_tmpfs_refuses_and_serves_again)
{
	static const char data[1000];
	char filler[128];
	unsigned put_count = 0;
	int result;

	new_dir();
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", dir, "tmpfs", 0, "size=256k") < 0) {
		printf("mounting is not permitted here: full_tmpfs skipped\n");
		remove_dir();
		return;
	}
	(void)snprintf(filler, sizeof(filler), "%s/filler", dir);
	write_filler(filler, 100 * 1024);
	expect_eq(timerhub_journal_open(&journal, dir, &small), 0);
	do
		result = timerhub_journal_put(journal, HOUR, 0, data, sizeof(data), NULL);
	while (result == 0 && ++put_count < 1000);
	expect(result == -ENOSPC);
	expect_eq(stats().tasks, put_count);
	expect(timerhub_journal_put(journal, HOUR, 0, data, sizeof(data), NULL) == -ENOSPC);
	expect_eq(unlink(filler), 0);
	expect_eq(timerhub_journal_put(journal, HOUR, 0, data, sizeof(data), NULL), 0);
	expect_eq(timerhub_journal_cancel(journal, 1), 0);
	timerhub_journal_close(journal);
	expect_eq(timerhub_journal_open(&journal, dir, &small), 0);
	expect_eq(stats().tasks, put_count);
	timerhub_journal_close(journal);
	expect_eq(umount(dir), 0);
	remove_dir();
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("calls", argc, argv);
	tests_add(tasks_come_in_order_and_not_before_their_time, 60);
	tests_add(tasks_survive_close_and_open, 60);
	tests_add(a_task_taken_is_its_takers, 60);
	tests_add(a_lease_that_is_over_gives_the_task_back, 60);
	tests_add(fd_is_readable_just_while_a_task_is_due, 60);
	tests_add(a_full_journal_says_so_until_there_is_room, 60);
	tests_add(misuse_is_answered, 60);
	tests_add(check_looks_and_changes_nothing, 60);
	tests_add(child_of_fork_is_told_and_harms_nothing, 60);
	tests_add(child_that_lives_on_does_not_keep_the_journal_busy, 60);
	tests_add(child_that_lives_on_does_not_keep_the_journal_of_a_killed_parent_busy, 60);
	tests_add(every_task_ends_once_under_many_threads, 120);
	tests_add(plain_calls_serve_where_io_uring_is_refused, 120);
	tests_add(close_sends_blocked_takers_away, 60);
	tests_add(each_of_many_blocked_takers_gets_one, 60);
	tests_add(full_tmpfs_refuses_and_serves_again, 60);
	return tests_run();
}
