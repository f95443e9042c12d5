/* SPDX-License-Identifier: MIT */
/*
 * The wall clock is set while a store is open, and the monotonic clock stopped (the program's own,
 * see wall_clock.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fixture.h"
#include <harness.h>
#include <wall_clock.h>

STORE_TEST(lease_is_a_length_whatever_the_clock_says, 60)
{
	struct timerhub_store_task task;

	(void)put_in(0, NULL, "x");
	task = take_one();
	wall_clock_set(2 * HOUR);
	take_none(); /* a second live delivery */
	expect_eq(timerhub_store_cancel(store, task.id), -EBUSY);
	expect_eq(timerhub_store_touch(store, &task, MS), 0);
	timerhub_store_release(store, &task);
	wall_clock_set(HOUR);
	/* the lease of 1 ms ends, and by the clock that was set back the task is due too */
	task = take_one();
	expect_eq(task.attempts, 2);
	expect_eq(timerhub_store_done(store, &task), 0);
}

static void *take_it(void *argument)
{
	struct timerhub_store_task *task = argument;

	expect_eq(timerhub_store_take(store, task, 1, ARRIVES), 1);
	return NULL;
}

STORE_TEST(resting_taker_sees_the_clock_being_set, 60)
{
	struct timerhub_store_task task;
	pthread_t taker;

	(void)put_in(HOUR, NULL, "x");
	thread_start(&taker, take_it, &task);
	sleep_ns(20 * MS);
	wall_clock_set(HOUR);
	thread_join(taker);
	expect_le(task.due_ns, wall_ns());
	expect_eq(timerhub_store_done(store, &task), 0);
}

STORE_TEST(task_that_is_early_again_does_not_come, 60)
{
	struct timerhub_store_task task;

	(void)put_in(0, NULL, "x");
	wall_clock_set(0 - HOUR);
	take_none();
	wall_clock_set(0);
	task = take_one();
	expect_eq(timerhub_store_done(store, &task), 0);
}

/* An hourly task is taken while the clock is two hours ahead, and done then, or after that. */
static struct timerhub_store_task done_ahead(bool is_right_again)
{
	struct timerhub_store_put put = { .size = sizeof(put),
		                          .interval_ns = HOUR,
		                          .key = "periodic" };
	struct timerhub_store_task task;

	expect_eq(timerhub_store_put(store, &put, NULL), 0);
	wall_clock_set(2 * HOUR);
	task = take_one();
	expect_eq(task.periods, 3);
	if (is_right_again) {
		wall_clock_set(0);
		take_none();
	}
	expect_eq(timerhub_store_done(store, &task), 0);
	return task;
}

static uint64_t due_ns_of_the_task(void)
{
	return (uint64_t)sql_number("SELECT due_us FROM timerhub_tasks") * 1000;
}

/* The wrong clock ends after the done, before it, before an open, or unseen by the next handle. */
STORE_TEST_LOOP(period_set_by_a_wrong_clock_comes_back, 60, 4)
{
	struct timerhub_store *first = store;
	struct timerhub_store_task task;
	uint64_t due_ns;

	if (_i == 3)
		store = fixture_open(NULL);
	task = done_ahead(_i == 1);
	expect_lt(wall_ns(), due_ns_of_the_task());
	if (_i >= 2)
		timerhub_store_close(store);
	wall_clock_set(0);
	store = _i == 2 ? fixture_open(NULL) : first;
	if (_i != 2)
		take_none();
	due_ns = due_ns_of_the_task();
	expect_le(due_ns, wall_ns() + HOUR);
	expect_eq((due_ns - task.due_ns) % HOUR, 0);
}

STORE_TEST(period_set_by_a_wrong_clock_comes_back_if_the_next_worker_dies, 60)
{
	struct timerhub_store_task task;

	(void)done_ahead(false);
	wall_clock_set(4 * HOUR);
	task = take_one();
	expect_eq(timerhub_store_touch(store, &task, MS), 0);
	timerhub_store_release(store, &task);
	wall_clock_set(0);
	sleep_ns(2 * MS);
	take_none();
	expect_le(due_ns_of_the_task(), wall_ns() + HOUR);
}

/* After a move, an UPDATE or a new interval, the due time must stay when the clock is set right. */
STORE_TEST_LOOP(time_that_anybody_else_has_set_is_never_touched, 60, 3)
{
	uint64_t due_ns;

	(void)done_ahead(false);
	if (_i == 0)
		expect_eq(timerhub_store_move_key(store, "periodic", HOUR, 0), 0);
	else
		sql(_i == 1 ? "UPDATE timerhub_tasks SET due_us=due_us"
		            : "UPDATE timerhub_tasks SET interval_us=interval_us+1");
	due_ns = due_ns_of_the_task();
	wall_clock_set(0);
	take_none();
	expect_eq(due_ns_of_the_task(), due_ns);
}

static bool proc_is_missing, clock_is_behind;

/* An open ends a lease of an earlier boot, and one that is over outside the time namespace. */
STORE_TEST_LOOP(leases_of_an_earlier_boot_are_void, 60, 2)
{
	struct timerhub_store_task task;

	(void)put_in(0, NULL, "x");
	task = take_one();
	timerhub_store_release(store, &task);
	take_none();
	timerhub_store_close(store);
	clock_is_behind = _i == 1;
	if (_i == 0)
		sql("UPDATE timerhub_clock SET boot='another'");
	store = fixture_open(NULL);
	task = take_one();
	expect_eq(task.attempts, 2);
	expect_eq(timerhub_store_done(store, &task), 0);
}

/* In place of the C library's. */
int open64(const char *path, int flags, ...)
{
	static const char offsets[] = "monotonic 0 0\nboottime  -3600         0\n";
	mode_t mode = 0;
	int offsets_fd;
	va_list rest;

	va_start(rest, flags);
	if (flags & O_CREAT)
		mode = va_arg(rest, mode_t);
	va_end(rest);
	if (proc_is_missing && strncmp(path, "/proc/", 6) == 0) {
		errno = ENOENT;
		return -1;
	}
	if (clock_is_behind && strcmp(path, "/proc/self/timens_offsets") == 0) {
		offsets_fd = memfd_create(path, 0);
		expect_eq(pwrite(offsets_fd, offsets, strlen(offsets), 0), strlen(offsets));
		return offsets_fd;
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

TEST(boot_without_a_name_is_known_by_its_time, 60)
{
	struct timerhub_store *second;
	struct timerhub_store_task task;

	proc_is_missing = true;
	fixture_begin(NULL);
	(void)put_in(0, NULL, "x");
	task = take_one();
	timerhub_store_release(store, &task);
	second = fixture_open(NULL);
	expect_eq(timerhub_store_take(second, &task, 1, 0),
	          0); /* of this boot: the lease goes on */
	timerhub_store_close(second);
	sql("UPDATE timerhub_clock SET offset_us=offset_us-1000000");
	second = fixture_open(NULL);
	expect_eq(timerhub_store_take(second, &task, 1, ARRIVES), 1);
	expect_eq(task.attempts, 2);
	expect_eq(timerhub_store_done(second, &task), 0);
	timerhub_store_close(second);
	fixture_end();
}
