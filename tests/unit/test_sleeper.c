/* SPDX-License-Identifier: MIT */
/*
 * Tests the owner's two sleepers, io_uring (also as before Linux 6.15) and poll. A sleep lasts for
 * the requested time, unless the bell (the owner's eventfd) or the timerfd is readable. A sleep may
 * also end early without a reason, so the tests repeat a sleep. If the kernel refuses io_uring, the
 * program prints the refusal.
 */
#include "harness.h"
#include "older_uring.h"
#include "uring_allowed.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bell.h"
#include "owner/sleeper.h"

struct rig {
	struct sleeper sleeper;
	int bell, deadline_fd;
};

enum way { BY_URING, BY_OLDER_URING, BY_POLL };

/* Opens the fixture. Returns false if the sleeper is not available on this machine. */
static bool rig_open(struct rig *rig, enum way way)
{
	int result = 0;

	uring_is_older = way == BY_OLDER_URING;
	rig->bell = bell_open();
	rig->deadline_fd = bell_open();
	expect_le(0, rig->bell);
	expect_le(0, rig->deadline_fd);
	if (way == BY_POLL)
		sleeper_open_poll(&rig->sleeper, rig->bell, rig->deadline_fd);
	else
		result = sleeper_open_uring(&rig->sleeper, rig->bell, rig->deadline_fd);
	if (result < 0) {
		if (!uring_ran_out(result))
			expect_eq(result, -uring_refused());
		printf("skipped: io_uring: %s\n", strerror(-result));
		bell_close(rig->bell);
		bell_close(rig->deadline_fd);
		return false;
	}
	expect_eq(rig->sleeper.ops->start(&rig->sleeper), 0);
	return true;
}

static void rig_close(struct rig *rig)
{
	rig->sleeper.ops->close(&rig->sleeper);
	bell_close(rig->bell);
	bell_close(rig->deadline_fd);
}

static void with_each(void (*check)(struct rig *rig))
{
	for (enum way way = BY_URING; way <= BY_POLL; way++) {
		struct rig rig;

		if (!rig_open(&rig, way))
			continue;
		check(&rig);
		rig_close(&rig);
	}
}

/* Sleeps, and returns the duration of the sleep. The sleep may end early without a reason. */
static uint64_t rig_sleep(struct rig *rig, uint64_t timeout_ns)
{
	uint64_t begin_ns = monotonic_ns();

	expect_eq(rig->sleeper.ops->sleep(&rig->sleeper, timeout_ns), 0);
	return monotonic_ns() - begin_ns;
}

/*
 * A single sleep may end early without a reason. At least one sleep in ten must last for the whole
 * requested time.
 */
static void check_sleep(struct rig *rig)
{
	static const uint64_t timeouts_ns[] = { 0, 1, 50 * US, 3 * MS, 20 * MS };

	for (unsigned i = 0; i < COUNT_OF(timeouts_ns); i++) {
		unsigned tries = 0;

		while (rig_sleep(rig, timeouts_ns[i]) < timeouts_ns[i])
			expect_lt(++tries, 10);
	}
}

TEST(sleep_lasts_for_its_time, 20)
{
	with_each(check_sleep);
}

static void check_bell_rung_before(struct rig *rig)
{
	for (unsigned i = 0; i < 100; i++) {
		bell_ring(rig->bell);
		(void)rig_sleep(rig, UINT64_MAX);
		/* One signal of the bell may end only one sleep. */
		while (rig_sleep(rig, 100 * US) < 100 * US) {
		}
	}
}

TEST(bell_rung_before_ends_it, 20)
{
	with_each(check_bell_rung_before);
}

/* A thread that waits, sets `rung`, and signals the bell or the timerfd. */
struct ringer {
	int fd;
	atomic_bool rung;
};

static void *ringer_main(void *argument)
{
	struct ringer *ringer = argument;

	sleep_ns(5 * MS);
	atomic_store(&ringer->rung, true);
	bell_ring(ringer->fd);
	return NULL;
}

static void check_bell_or_alarm_rung_meanwhile(struct rig *rig)
{
	for (unsigned i = 0; i < 10; i++) {
		struct ringer ringer = { .fd = i % 2 == 0 ? rig->bell : rig->deadline_fd };
		pthread_t thread;

		thread_start(&thread, ringer_main, &ringer);
		do /* a sleep may also end before the other thread has signalled */
			(void)rig_sleep(rig, i % 4 < 2 ? UINT64_MAX : HOUR);
		while (!atomic_load(&ringer.rung));
		thread_join(thread);
		bell_clear(rig->bell);
		bell_clear(rig->deadline_fd);
	}
}

TEST(bell_or_alarm_rung_meanwhile_ends_it, 20)
{
	with_each(check_bell_or_alarm_rung_meanwhile);
}

/* More signals than the ring has room for completions, each seen by the kernel before the next. */
static void check_storm(struct rig *rig)
{
	struct ringer ringer = { .fd = rig->bell };
	pthread_t thread;
	unsigned sleeps;

	for (unsigned i = 0; i < 100; i++) {
		bell_ring(rig->bell);
		bell_ring(rig->deadline_fd);
		(void)getppid();
	}
	bell_clear(rig->deadline_fd);
	thread_start(&thread, ringer_main, &ringer);
	for (sleeps = 0; !atomic_load(&ringer.rung); sleeps++)
		(void)rig_sleep(rig, UINT64_MAX);
	thread_join(thread);
	/* the ring's room, and what the kernel kept besides, but not again and again */
	expect_lt(sleeps, 100);
	check_sleep(rig);
}

TEST(storm_of_signals_ends_a_few_sleeps, 20)
{
	with_each(check_storm);
}

TEST(no_descriptor_is_left, 20)
{
	for (enum way way = BY_URING; way <= BY_POLL; way++) {
		int before = dup(0);
		struct rig rig;

		expect_eq(close(before), 0);
		if (!rig_open(&rig, way))
			continue;
		rig_close(&rig);
		for (int i = 0; i < 4; i++)
			expect_eq(dup(0), before + i);
		for (int i = 0; i < 4; i++)
			expect_eq(close(before + i), 0);
	}
}

int main(int argc, char **argv)
{
	tests_begin(argc, argv);
	(void)uring_refused();
	return tests_run();
}
