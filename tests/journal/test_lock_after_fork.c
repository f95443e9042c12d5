/* SPDX-License-Identifier: MIT */
/*
 * The lock of a directory ends with the process that holds it, even if forked children live longer.
 */
#include <errno.h>
#include <fcntl.h>
#include <journal/file_lock.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <harness.h>

#define NAME "lock"

static char path[] = "/tmp/hold-XXXXXX";
static int dir;
static int alive[2]; /* pipe; a child ends when all write ends of the pipe are closed */

static void (*after_flock)(void); /* function that the replaced flock() calls once */
static unsigned waits;

/* Runs code of a test just after the lock was taken. */
int flock(int file, int operation)
{
	void (*hook)(void) = after_flock;
	int result = (int)syscall(SYS_flock, file, operation);

	if (hook && (operation & LOCK_EX) != 0) {
		after_flock = NULL;
		hook();
	}
	return result;
}

int poll(struct pollfd *files, nfds_t count, int timeout_ms)
{
	(void)files;
	(void)count;
	waits++;
	sleep_ns((uint64_t)timeout_ms * MS);
	return 0;
}

static void begin(void)
{
	expect(mkdtemp(path) != NULL);
	dir = open(path, O_RDONLY | O_DIRECTORY);
	expect_le(0, dir);
	expect_eq(pipe(alive), 0);
}

static void end(void)
{
	(void)close(alive[1]);
	expect_eq(unlinkat(dir, NAME, 0), 0);
	expect_eq(rmdir(path), 0);
}

/* In a child, once: the number may later be another file's. */
static void do_not_keep_alive(void)
{
	if (alive[1] >= 0)
		(void)close(alive[1]);
	alive[1] = -1;
}

static void live_on(void)
{
	char byte;

	do_not_keep_alive();
	(void)!read(alive[0], &byte, 1);
	_exit(0);
}

static void fork_child(void)
{
	pid_t child = fork();

	if (child == 0)
		live_on();
	expect_lt(0, child);
}

/* For another process, now. */
static void expect_lock(int wanted)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		struct file_lock lock;

		_exit(file_lock_take(&lock, dir, NAME) == wanted ? 0 : 1);
	}
	expect_eq(waitpid(child, &status, 0), child);
	expect_eq(status, 0);
}

/* A child that has not run since its fork still has the inherited file. */
static void expect_free_soon(void)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;
	struct file_lock lock;

	while (file_lock_take(&lock, dir, NAME) < 0) {
		expect_lt(monotonic_ns(), until_ns);
		sleep_ns(MS);
	}
	file_lock_give(&lock);
}

/* With `killed`, by a signal. */
static void expect_end(pid_t process, bool killed)
{
	int status = 0;

	expect_eq(waitpid(process, &status, 0), process);
	expect_eq(status, killed ? SIGKILL : 0);
}

START_TEST(lock_is_exclusive_in_and_outside_the_process)
{
	struct file_lock first, second;

	begin();
	expect_eq(file_lock_take(&first, dir, NAME), 0);
	expect(file_lock_take(&second, dir, NAME) == -EBUSY);
	expect_lock(-EBUSY);
	file_lock_give(&first);
	file_lock_give(&first);
	expect_lock(0);
	expect_eq(file_lock_take(&second, dir, NAME), 0);
	file_lock_give(&second);
	end();
}
END_TEST

START_TEST(lock_is_free_when_its_holder_is_killed_and_his_child_lives)
{
	struct file_lock lock;
	pid_t holder;

	begin();
	holder = fork();
	if (holder == 0) {
		expect_eq(file_lock_take(&lock, dir, NAME), 0);
		do_not_keep_alive();
		fork_child();
		(void)raise(SIGKILL);
	}
	expect_end(holder, true);
	expect_free_soon();
	end();
}
END_TEST

START_TEST(lock_is_free_when_it_was_given_back_and_a_child_lives)
{
	struct file_lock lock;
	pid_t child;

	begin();
	expect_eq(file_lock_take(&lock, dir, NAME), 0);
	/* without fork handlers, so it keeps the lock's file */
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (child == 0)
		live_on();
	expect_lt(0, child);
	file_lock_give(&lock);
	expect_lock(0);
	end();
}
END_TEST

/* Another file may have the inherited one's number, and must stay open. */
START_TEST(child_that_gives_back_what_it_inherited_takes_nothing_away)
{
	struct file_lock lock, own;
	pid_t child;
	int number;

	begin();
	expect_eq(file_lock_take(&lock, dir, NAME), 0);
	number = lock.file;
	child = fork();
	if (child == 0) {
		expect(fcntl(number, F_GETFD) < 0);
		expect_eq(file_lock_take(&own, dir, "other"), 0);
		expect_eq(waits, 0);
		expect_eq(own.file, number);
		file_lock_give(&lock);
		expect_lock(-EBUSY);
		expect_eq(fcntl(number, F_GETFD), FD_CLOEXEC);
		file_lock_give(&own);
		_exit(unlinkat(dir, "other", 0) == 0 ? 0 : 1);
	}
	expect_end(child, false);
	expect_lock(-EBUSY);
	file_lock_give(&lock);
	end();
}
END_TEST

/* ---- a fork between opening the file and noting it ---- */

/* No call on the lock waits, in the child or the parent. */
static void expect_at_once(struct file_lock *lock)
{
	unsigned before = waits;

	expect_eq(file_lock_take(lock, dir, NAME), 0);
	expect_eq(waits, before);
	file_lock_give(lock);
}

/* Fork in a signal handler. */
START_TEST(child_of_a_fork_inside_taking_does_not_keep_the_lock)
{
	struct file_lock lock;
	pid_t holder;

	begin();
	holder = fork();
	if (holder == 0) {
		do_not_keep_alive();
		after_flock = fork_child;
		expect_eq(file_lock_take(&lock, dir, NAME), 0);
		_exit(after_flock == NULL ? 0 : 1);
	}
	expect_end(holder, false);
	expect_free_soon();
	expect_at_once(&lock);
	end();
}
END_TEST

static atomic_bool slow, begun, go_on, ended;

/* Registered before the lock's handlers, so it runs after them. */
static void in_fork(void)
{
	begun = slow;
	while (slow && !go_on)
		sleep_ns(MS);
}

static void *fork_slowly(void *argument)
{
	(void)argument;
	slow = true;
	fork_child();
	ended = true;
	return NULL;
}

static void let_it_fork(void)
{
	go_on = true;
	while (!ended)
		sleep_ns(MS);
}

START_TEST(child_of_a_fork_begun_before_taking_does_not_keep_the_lock)
{
	pthread_t forker;
	struct file_lock lock;
	pid_t holder;

	begin();
	/* Take a lock once, so that the fork handlers are registered. */
	expect_lock(0);
	expect_at_once(&lock);
	holder = fork();
	if (holder == 0) {
		do_not_keep_alive();
		thread_start(&forker, fork_slowly, NULL);
		while (!begun)
			sleep_ns(MS);
		after_flock = let_it_fork;
		expect_eq(file_lock_take(&lock, dir, NAME), 0);
		thread_join(forker);
		_exit(0);
	}
	expect_end(holder, false);
	expect_free_soon();
	end();
}
END_TEST

int main(int argc, char **argv)
{
	expect_eq(pthread_atfork(in_fork, NULL, NULL), 0);
	tests_begin("lock_after_fork", argc, argv);
	tests_add(lock_is_exclusive_in_and_outside_the_process, 60);
	tests_add(lock_is_free_when_its_holder_is_killed_and_his_child_lives, 60);
	tests_add(lock_is_free_when_it_was_given_back_and_a_child_lives, 60);
	tests_add(child_that_gives_back_what_it_inherited_takes_nothing_away, 60);
	tests_add(child_of_a_fork_inside_taking_does_not_keep_the_lock, 60);
	tests_add(child_of_a_fork_begun_before_taking_does_not_keep_the_lock, 60);
	return tests_run();
}
