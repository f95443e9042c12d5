/* SPDX-License-Identifier: MIT */
/*
 * Under libfaketime, with the clock 30 days back, 30 days ahead and twice as fast: hubs and loops
 * on every clock expire, by the clock of the program, and are never early. Builds and test suites
 * run so. The program runs itself for each of these clocks, and is skipped without libfaketime.
 */
#include "harness.h"

#include <glob.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <timerhub_loop.h>
#include <unistd.h>

#include "process_usage.h"

#define DELAY (20 * MS)
#define LIMIT_S 60
#define SKIPPED 77

static const clockid_t ids[] = {
	[TIMERHUB_CLOCK_MONOTONIC] = CLOCK_MONOTONIC,
	[TIMERHUB_CLOCK_BOOTTIME] = CLOCK_BOOTTIME,
	[TIMERHUB_CLOCK_REALTIME] = CLOCK_REALTIME,
};

/* ---- hubs ---- */

/* By the queue's descriptor, and by a wait, which has a limit of its own. */
static void hub_expires(uint32_t clock, uint32_t sleeper)
{
	struct timerhub_config config = {
		.size = sizeof(config), .timers_max = 64, .clock = clock, .sleeper = sleeper
	};
	struct timerhub_queue *queue;
	struct timerhub_event event;
	struct timerhub *hub;

	expect_eq(timerhub_open(&hub, &config), 0);
	expect_eq(timerhub_queue_open(hub, &queue, NULL), 0);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t due_ns = clock_ns(ids[clock]) + DELAY;

		expect_context("hub", clock, i);
		expect_eq(timerhub_after(queue, DELAY, i, NULL), 0);
		if (i == 0)
			expect(fd_readable_within(timerhub_queue_fd(queue), ARRIVES));
		expect_eq(timerhub_wait(queue, &event, 1, ARRIVES), 1);
		expect_le(due_ns, event.expires_ns);
		expect_le(event.expires_ns, clock_ns(ids[clock]));
	}
	expect_eq(timerhub_wait(queue, &event, 1, DELAY), 0);
	timerhub_close(hub);
}

/* ---- loops ---- */

static uint64_t called_ns; /* 0: the timeout has not expired */
static uint32_t called_clock;

static void called(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	(void)loop;
	(void)timeout;
	called_ns = clock_ns(ids[called_clock]);
}

/* Moves a timeout to an earlier time, and checks that it is called, but not too early. */
static void loop_expires(struct timerhub *hub, uint32_t clock, bool by_fd)
{
	struct timerhub_loop_config config = { .size = sizeof(config), .clock = clock };
	struct timerhub_timeout timeout = { .owner = 0 };
	struct timerhub_loop *loop;
	uint64_t due_ns;

	expect_context("loop", clock, by_fd);
	expect_eq(timerhub_loop_open(&loop, hub, &config), 0);
	expect_eq(timerhub_timeout_add(loop, &timeout, called), 0);
	expect_eq(timerhub_timeout_set(loop, &timeout, HOUR), 0);
	expect_eq(timerhub_loop_turn(loop), 0);
	called_ns = 0;
	called_clock = clock;
	due_ns = clock_ns(ids[clock]) + DELAY;
	expect_eq(timerhub_timeout_set(loop, &timeout, DELAY), 0);
	while (timerhub_loop_turn(loop) == 0) {
		if (by_fd)
			expect(fd_readable_within(timerhub_loop_fd(loop), ARRIVES));
		else
			(void)poll(NULL, 0, timerhub_loop_timeout_ms(loop));
	}
	expect_le(due_ns, called_ns);
	timerhub_loop_close(loop);
}

static int under_libfaketime(void)
{
	struct timerhub *hub;

	(void)alarm(LIMIT_S);
	expect_eq(timerhub_open(&hub, NULL), 0);
	loop_expires(hub, TIMERHUB_CLOCK_MONOTONIC, true);
	loop_expires(hub, TIMERHUB_CLOCK_MONOTONIC, false);
	timerhub_close(hub);
	for (uint32_t clock = 0; clock < COUNT_OF(ids); clock++) {
		loop_expires(NULL, clock, true);
		loop_expires(NULL, clock, false);
		hub_expires(clock, TIMERHUB_SLEEPER_AUTO);
		hub_expires(clock, TIMERHUB_SLEEPER_POLL);
	}
	return 0;
}

/* ---- the program runs itself ---- */

static void run_at(const char *program, const char *library, const char *when)
{
	pid_t child = fork();

	if (child == 0) {
		expect_eq(setenv("LD_PRELOAD", library, 1), 0);
		expect_eq(setenv("FAKETIME", when, 1), 0);
		(void)execl(program, program, "under libfaketime", (char *)NULL);
		_exit(EXIT_FAILURE);
	}
	printf("%s\n", when);
	fflush(stdout);
	child_ends_well(child);
}

int main(int argc, char **argv)
{
	static const char *const whens[] = { "-30d", "+30d", "+0 x2" };
	glob_t found = { .gl_pathc = 0 };

	if (argc > 1)
		return under_libfaketime();
	if (glob("/usr/lib*/*/faketime/libfaketime.so.1", 0, NULL, &found) != 0 &&
	    glob("/usr/lib*/faketime/libfaketime.so.1", 0, NULL, &found) != 0) {
		puts("skipped: no libfaketime here (package faketime)");
		return SKIPPED;
	}
	for (unsigned i = 0; i < COUNT_OF(whens); i++)
		run_at(argv[0], found.gl_pathv[0], whens[i]);
	globfree(&found);
	return 0;
}
