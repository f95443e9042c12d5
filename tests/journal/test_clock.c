/* SPDX-License-Identifier: MIT */
/*
 * The wall clock is set forward or back, by seconds to years, under an open journal: what is due by
 * it comes at once, the rest waits, the fd is readable while a task is due. The real timer with a
 * clock of the program's (wall_clock.h), and the simulated disk.
 */
#include <errno.h>
#include <journal/open.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "process_usage.h"
#include "wall_clock.h"

#define DAY (24 * HOUR)

static uint64_t ahead_ns;
static struct sim_disk disk;
static struct wall_timer *real_timer;
static struct timerhub_journal *journal;

static void jump(int64_t ns)
{
	ahead_ns += (uint64_t)ns;
	wall_clock_set(ahead_ns);
}

static uint64_t wall_ns(void)
{
	return real_timer->ops->wall_ns(real_timer);
}

static void begin_with(uint64_t lease_ns, bool threaded)
{
	struct timerhub_journal_config config = {
		.size = sizeof(config), .segment_bytes = 4096, .data_max = 100, .tasks_max = 100
	};

	config.lease_ns = lease_ns;
	sim_open(&disk, 1);
	expect_eq(journal_read_config(&config, &config), 0);
	expect_eq(wall_timer_real_open(&real_timer), 0);
	expect_eq(journal_open(&journal, &disk.disk, real_timer, &config, threaded), 0);
}

static void begin(void)
{
	begin_with(0, true);
}

static void end(void)
{
	timerhub_journal_close(journal);
	real_timer->ops->close(real_timer);
	sim_close(&disk);
	jump(-(int64_t)ahead_ns);
}

static uint64_t put(uint64_t delay_ns)
{
	uint64_t id = 0;

	expect_eq(timerhub_journal_put(journal, delay_ns, 0, NULL, 0, &id), 0);
	return id;
}

static bool is_readable(uint64_t timeout_ns)
{
	return fd_readable_within(timerhub_journal_fd(journal), timeout_ns);
}

/* The fd may be readable for nothing; a take makes it unreadable. */
static void expect_none(void)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;
	struct timerhub_journal_task task;

	do {
		expect_eq(timerhub_journal_take(journal, &task, 0), 0);
		expect_lt(monotonic_ns(), until_ns);
	} while (is_readable(0));
}

static void expect_task(uint64_t id)
{
	struct timerhub_journal_task task;

	expect(is_readable(ARRIVES));
	expect_eq(timerhub_journal_take(journal, &task, ARRIVES), 1);
	expect_eq(task.id, id);
	expect_le(task.due_ns, wall_ns());
	expect_eq(timerhub_journal_done(journal, &task), 0);
}

START_TEST(set_forward_what_fell_due_comes_at_once)
{
	uint64_t first, second;

	begin();
	first = put(DAY - HOUR);
	second = put(DAY - SEC);
	put(2 * DAY);
	expect_none();
	jump((int64_t)DAY);
	expect_task(first);
	expect_task(second);
	expect_none();
	end();
}
END_TEST

static void *late_taker(void *argument)
{
	uint64_t *id = argument;
	struct timerhub_journal_task task;

	expect_eq(timerhub_journal_take(journal, &task, 10 * ARRIVES), 1);
	expect_le(task.due_ns, wall_ns());
	*id = task.id;
	return NULL;
}

START_TEST(set_forward_a_blocked_taker_gets_it)
{
	uint64_t wanted, got = 0;
	pthread_t thread;

	begin();
	wanted = put(HOUR);
	thread_start(&thread, late_taker, &got);
	sleep_ns(20 * MS);
	jump((int64_t)HOUR);
	thread_join(thread);
	expect_eq(got, wanted);
	end();
}
END_TEST

START_TEST(set_back_what_was_due_waits)
{
	uint64_t first, second, third;

	begin();
	first = put(0);
	second = put(HOUR);
	expect(is_readable(ARRIVES));
	jump(-(int64_t)DAY);
	expect_none();
	/* The third task is due earlier than the other tasks. */
	third = put(0);
	expect_task(third);
	expect_none();
	jump((int64_t)DAY);
	expect_task(first);
	expect_none();
	jump((int64_t)HOUR);
	expect_task(second);
	end();
}
END_TEST

START_TEST(set_back_while_others_are_due)
{
	uint64_t early, late;

	begin();
	late = put(0);
	expect(is_readable(ARRIVES));
	jump(-(int64_t)HOUR);
	early = put(30 * MS);
	/* the timer was set for the later task, and the earlier one must not wait for it */
	jump((int64_t)(30 * SEC));
	expect_task(early);
	expect_none();
	jump((int64_t)HOUR);
	expect_task(late);
	end();
}
END_TEST

/*
 * The fd must be readable at a lease's end, even if the clock goes back an hour. No keeper here,
 * since the disk may delay it.
 */
START_TEST(set_back_while_a_lease_lasts)
{
	struct timerhub_journal_task task;
	uint64_t id = 0;

	begin_with(100 * MS, false);
	expect_eq(timerhub_journal_put(journal, 1, TIMERHUB_ABSOLUTE, NULL, 0, &id), 0);
	expect(is_readable(ARRIVES));
	expect_eq(timerhub_journal_take(journal, &task, 0), 1);
	/* sets the timer to the lease's end, by the wall clock */
	expect_eq(timerhub_journal_take(journal, &task, 0), 0);
	jump(-(int64_t)HOUR);
	while (timerhub_journal_take(journal, &task, 0) == 0)
		expect(fd_readable_within(real_timer->ops->fd(real_timer), ARRIVES));
	expect_eq(task.id, id);
	expect_eq(task.attempts, 2);
	expect_eq(timerhub_journal_done(journal, &task), 0);
	end();
}
END_TEST

/* A caller of set() may have computed by the old clock, so it must look again. */
START_TEST(set_of_the_timer_that_learns_of_a_jump_rings)
{
	begin();
	real_timer->ops->set(real_timer, wall_ns() + DAY);
	jump(-(int64_t)HOUR);
	real_timer->ops->set(real_timer, wall_ns() + DAY);
	expect(fd_readable_within(real_timer->ops->fd(real_timer), ARRIVES));
	real_timer->ops->set(real_timer, wall_ns() + DAY);
	expect(!fd_readable(real_timer->ops->fd(real_timer)));
	end();
}
END_TEST

START_TEST(random_jumps_never_early_never_forgotten)
{
	struct dice dice = dice_new(1);
	struct timerhub_journal_task task;
	uint64_t put_count = 0, taken = 0;

	begin();
	for (unsigned i = 0; i < scaled(2000); i++) {
		if (dice_one_in(&dice, 2) && put_count - taken < 90) {
			put(dice_magnitude(&dice, 42));
			put_count++;
		}
		if (dice_one_in(&dice, 3))
			jump((int64_t)dice_magnitude(&dice, 43) -
			     (int64_t)dice_magnitude(&dice, 43));
		while (timerhub_journal_take(journal, &task, 0) == 1) {
			expect_le(task.due_ns, wall_ns());
			expect_eq(timerhub_journal_done(journal, &task), 0);
			taken++;
		}
	}
	jump((int64_t)DAY * 365);
	for (; taken < put_count; taken++) {
		expect_eq(timerhub_journal_take(journal, &task, ARRIVES), 1);
		expect_eq(timerhub_journal_done(journal, &task), 0);
	}
	end();
}
END_TEST

START_TEST(far_away_is_no_error)
{
	uint64_t far = 0, id = 0;

	begin();
	expect_eq(timerhub_journal_put(journal, (UINT64_C(1) << 63) - 1, TIMERHUB_ABSOLUTE, NULL, 0,
	                               &far),
	          0);
	expect_eq(timerhub_journal_put(journal, TIMERHUB_NEVER, 0, NULL, 0, &id), 0);
	expect_none();
	/* a year forward, and nothing is due */
	jump((int64_t)DAY * 366);
	expect_none();
	expect_eq(timerhub_journal_move(journal, id, HOUR, 0), 0);
	expect_none();
	jump((int64_t)HOUR);
	expect_task(id);
	end();
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("clock", argc, argv);
	tests_add(set_forward_what_fell_due_comes_at_once, 60);
	tests_add(set_forward_a_blocked_taker_gets_it, 60);
	tests_add(set_back_what_was_due_waits, 60);
	tests_add(set_back_while_others_are_due, 60);
	tests_add(set_back_while_a_lease_lasts, 60);
	tests_add(set_of_the_timer_that_learns_of_a_jump_rings, 60);
	tests_add(random_jumps_never_early_never_forgotten, 120);
	tests_add(far_away_is_no_error, 60);
	return tests_run();
}
