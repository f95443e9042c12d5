/* SPDX-License-Identifier: MIT */
/*
 * Law 11: without io_uring the owner sleeps in ppoll(), says so in its statistics, and all other
 * laws hold. A process for each test, with calls refused by seccomp or rlimits; an open that fails
 * halfway leaves nothing. TIMERHUB_SLEEPER counts only where the config says AUTO, and
 * TIMERHUB_HUGE_PAGES is advice.
 */
#include "refuse_calls.h"
#include "rig.h"

#include <inttypes.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <timerhub_loop.h>
#include <unistd.h>

/* Of 8 bytes, as an eventfd takes them. */
static void refuse_eights(int call, int error)
{
	const struct scmp_arg_cmp length = { .arg = 2, .op = SCMP_CMP_EQ, .datum_a = 8 };

	refuse_calls_if(call, error, &length);
}

static int open_on(uint32_t clock, uint32_t sleeper, struct timerhub **ret_hub)
{
	struct timerhub_config config = {
		.size = sizeof(config), .clock = clock, .sleeper = sleeper, .timers_max = 64
	};

	return timerhub_open(ret_hub, &config);
}

static int open_sleeper(uint32_t sleeper, struct timerhub **ret_hub)
{
	return open_on(TIMERHUB_CLOCK_MONOTONIC, sleeper, ret_hub);
}

static void expect_works(struct rig *rig)
{
	for (unsigned i = 0; i < 50; i++) {
		timerhub_timer timer = arm_after(rig->queue, HOUR, i);

		expect_eq(timerhub_rearm(rig->hub, timer, i * 10 * US, 0), 0);
		expect_eq(take_one(rig->queue).data, i);
	}
}

static void expect_works_with(uint32_t asked, uint32_t used)
{
	struct rig rig = { NULL, NULL };

	expect_eq(open_sleeper(asked, &rig.hub), 0);
	rig.queue = queue_open(rig.hub);
	expect_eq(stats_of(rig.hub).sleeper, used);
	expect_works(&rig);
	rig_close(&rig);
}

/* A filter refuses `call`: each event still rings, and a drain still clears the descriptor. */
static void expect_rings_without(int call)
{
	struct rig rig = { NULL, NULL };

	refuse_calls(call, EPERM);
	expect_eq(open_sleeper(TIMERHUB_SLEEPER_AUTO, &rig.hub), 0);
	rig.queue = queue_open(rig.hub);
	for (unsigned i = 0; i < 20; i++) {
		arm_after(rig.queue, i * 100 * US, i);
		expect_eq(take_one(rig.queue).data, i);
		expect_eq(timerhub_drain(rig.queue, &(struct timerhub_event){ 0 }, 1), 0);
		expect(!fd_readable(timerhub_queue_fd(rig.queue)));
	}
	rig_close(&rig);
}

static const int refusals[] = { EPERM, ENOSYS, ENOMEM, EMFILE };

/* The first call alone, or, as Docker's default profile does, all. */
TEST_LOOP(denied_io_uring_falls_back_when_not_insisted_on, 30, 2 * COUNT_OF(refusals))
{
	int error = refusals[_i % (int)COUNT_OF(refusals)];
#ifdef TIMERHUB_WITHOUT_IO_URING
	int refused = uring_refused();
#else
	int refused = error;
#endif
	unsigned fds = process_fd_count();
	unsigned threads = process_threads_at_rest();
	struct timerhub *hub = NULL;

	refuse_calls(SCMP_SYS(io_uring_setup), error);
	if (_i >= (int)COUNT_OF(refusals)) {
		refuse_calls(SCMP_SYS(io_uring_enter), error);
		refuse_calls(SCMP_SYS(io_uring_register), error);
	}
	expect_works_with(TIMERHUB_SLEEPER_AUTO, TIMERHUB_SLEEPER_POLL);
	expect_works_with(TIMERHUB_SLEEPER_POLL, TIMERHUB_SLEEPER_POLL);
	expect_eq(open_sleeper(TIMERHUB_SLEEPER_URING, &hub), -refused);
	expect_eq(open_on(TIMERHUB_CLOCK_REALTIME, TIMERHUB_SLEEPER_URING, &hub), -refused);
	expect(!hub);
	expect_eq(process_fd_count(), fds);
	process_settles_at_threads(threads);
}

/*
 * If a seccomp filter refuses one of these calls, the hub uses another: ppoll() in place of
 * io_uring, write() and read() in place of writev() and readv() on its eventfds.
 */
TEST_LOOP(denied_one_call_of_several_another_is_used, 30, 4)
{
	static const int calls[] = { SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register),
		                     SCMP_SYS(writev), SCMP_SYS(readv) };

	expect_rings_without(calls[_i]);
}

TEST(denied_queue_leaves_the_hub_alone, 30)
{
	struct rig rig = rig_open(4);
	struct timerhub_queue *queue = NULL;
	unsigned fds = process_fd_count();

	refuse_calls(SCMP_SYS(eventfd2), ENFILE);
	expect_eq(timerhub_queue_open(rig.hub, &queue, NULL), -ENFILE);
	expect(!queue);
	expect_eq(process_fd_count(), fds);
	arm_after(rig.queue, 0, 1);
	expect_eq(take_one(rig.queue).data, 1);
	rig_close(&rig);
}

/* An owner that nobody can wake would lose timers: better no hub. */
TEST_LOOP(denied_eventfd_that_cannot_ring_is_told_at_the_open, 30, 2)
{
	static const int calls[][2] = { { SCMP_SYS(writev), SCMP_SYS(write) },
		                        { SCMP_SYS(readv), SCMP_SYS(read) } };
	struct timerhub *hub = NULL;
	unsigned fds = process_fd_count();

	refuse_calls(calls[_i][0], EPERM);
	refuse_eights(calls[_i][1], EPERM);
	expect_eq(open_sleeper(TIMERHUB_SLEEPER_AUTO, &hub), -EPERM);
	expect(!hub);
	expect_eq(process_fd_count(), fds);
}

/* ---- traps ---- */

/* The call that a sandbox traps; `only` is its first argument, if not 0. */
struct trap {
	int call;
	unsigned only;
	uint32_t clock, sleeper;
	bool uring, later; /* made only on io_uring; trapped only after the open */
};

static const struct trap traps[] = {
	{ .call = SCMP_SYS(io_uring_setup), .uring = true },
	{ .call = SCMP_SYS(io_uring_register), .uring = true },
	{ .call = SCMP_SYS(io_uring_enter), .uring = true },
	{ .call = SCMP_SYS(prctl), .only = PR_SET_NAME },
	{ .call = SCMP_SYS(prctl), .only = PR_SET_TIMERSLACK, .sleeper = TIMERHUB_SLEEPER_POLL },
	{ .call = SCMP_SYS(ppoll), .sleeper = TIMERHUB_SLEEPER_POLL },
	{ .call = SCMP_SYS(writev) },
	{ .call = SCMP_SYS(io_uring_enter), .uring = true, .later = true },
	{ .call = SCMP_SYS(ppoll), .sleeper = TIMERHUB_SLEEPER_POLL, .later = true },
	{ .call = SCMP_SYS(timerfd_settime), .clock = TIMERHUB_CLOCK_BOOTTIME, .later = true },
	{ .call = SCMP_SYS(writev), .later = true },
};

static void install(const struct trap *trap)
{
	const struct scmp_arg_cmp only = { .op = SCMP_CMP_EQ, .datum_a = trap->only };

	trap_calls_if(trap->call, ENOSYS, trap->only ? &only : NULL);
}

/* Browsers and Android trap, and the process's SIGSYS handler answers in place of the call. */
TEST_LOOP(denied_by_a_trap_as_by_an_error, 30, COUNT_OF(traps))
{
	const struct trap *trap = &traps[_i];
	struct rig rig = { NULL, NULL };

	if (!trap->later)
		install(trap);
	expect_eq(open_on(trap->clock, trap->sleeper, &rig.hub), 0);
	rig.queue = queue_open(rig.hub);
	if (trap->later)
		install(trap);
	expect_works(&rig);
	if (!trap->uring || !uring_refused())
		expect_cmp(trap_count, >, 0);
	if (trap->uring)
		expect_eq(stats_of(rig.hub).sleeper, TIMERHUB_SLEEPER_POLL);
	rig_close(&rig);
}

/* ---- the environment ---- */

/* Returns the sleeper, or the errno of the open. */
static int sleeper_of(uint32_t asked, uint32_t flags)
{
	struct timerhub_config config = {
		.size = sizeof(config), .timers_max = 4, .flags = flags, .sleeper = asked
	};
	struct timerhub *hub;
	int result = timerhub_open(&hub, &config);

	if (result < 0)
		return result;
	result = (int)stats_of(hub).sleeper;
	timerhub_close(hub);
	return result;
}

TEST(environment_decides_where_the_config_does_not, 30)
{
	static const char *const others[] = { "", "auto", "POLL", "poll ", "polls", "2", "urin" };
	int refused = uring_refused();
	int uring = refused != 0 ? -refused : TIMERHUB_SLEEPER_URING;
	int best;

	expect_eq(unsetenv("TIMERHUB_SLEEPER"), 0);
	best = sleeper_of(TIMERHUB_SLEEPER_AUTO, 0);
	expect_eq(best, refused != 0 ? TIMERHUB_SLEEPER_POLL : TIMERHUB_SLEEPER_URING);
	expect_eq(setenv("TIMERHUB_SLEEPER", "poll", 1), 0);
	expect_eq(sleeper_of(TIMERHUB_SLEEPER_AUTO, 0), TIMERHUB_SLEEPER_POLL);
	expect_eq(sleeper_of(TIMERHUB_SLEEPER_POLL, 0), TIMERHUB_SLEEPER_POLL);
	expect_eq(sleeper_of(TIMERHUB_SLEEPER_URING, 0), uring);
	expect_eq(setenv("TIMERHUB_SLEEPER", "uring", 1), 0);
	expect_eq(sleeper_of(TIMERHUB_SLEEPER_AUTO, 0), uring);
	expect_eq(sleeper_of(TIMERHUB_SLEEPER_POLL, 0), TIMERHUB_SLEEPER_POLL);
	expect_eq(sleeper_of(TIMERHUB_SLEEPER_AUTO, TIMERHUB_MANUAL), TIMERHUB_SLEEPER_AUTO);
	for (unsigned i = 0; i < COUNT_OF(others); i++) {
		expect_eq(setenv("TIMERHUB_SLEEPER", others[i], 1), 0);
		expect_eq(sleeper_of(TIMERHUB_SLEEPER_AUTO, 0), best);
	}
}

/* ---- huge pages are advice ---- */

/* Mappings with huge pages asked for. */
static unsigned advised_count(void)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	char line[512];
	unsigned count = 0;

	expect(file != NULL);
	while (fgets(line, sizeof(line), file))
		count += strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " hg") != NULL;
	(void)fclose(file);
	return count;
}

#define HUGE_PAGE_KIB 2048u

/*
 * The KiB of anonymous memory that the kernel would back with huge pages where its setting is
 * "always": writable mappings that have room for one, and that nobody has advised against.
 */
static uint64_t open_to_huge_pages_kib(void)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	uint64_t kib = 0, sum_kib = 0;
	bool anonymous = false;
	char line[512], mode[8];
	unsigned inode;

	expect(file != NULL);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*x-%*x %7s %*s %*s %u", mode, &inode) == 2)
			anonymous = inode == 0 && strncmp(mode, "rw-p", 4) == 0;
		(void)sscanf(line, "Size: %" SCNu64 " kB", &kib);
		if (strncmp(line, "VmFlags:", 8) == 0 && anonymous && kib >= HUGE_PAGE_KIB &&
		    !strstr(line, " nh"))
			sum_kib += kib;
	}
	(void)fclose(file);
	return sum_kib;
}

/* By default, hubs and loops forbid the kernel to use huge pages for their memory. */
TEST(huge_pages_are_refused_if_nobody_asks, 60)
{
	uint64_t before_kib = open_to_huge_pages_kib();
	struct timerhub_loop *loop;
	struct rig rig, shown;

	/* a sanitizer maps memory of its own */
	if (sanitized())
		return;
	rig = rig_manual(0); /* no owner thread, because libc maps its stack */
	shown = rig_open_config(
		(struct timerhub_config){ .flags = TIMERHUB_MANUAL | TIMERHUB_OBSERVABLE });
	expect_eq(timerhub_loop_open(&loop, NULL, NULL), 0);
	if (access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) == 0)
		expect_eq(open_to_huge_pages_kib(), before_kib);
	timerhub_loop_close(loop);
	rig_close(&shown);
	rig_close(&rig);
}

TEST(huge_pages_are_asked_for, 60)
{
	unsigned before = advised_count();
	struct rig plain = rig_open_config((struct timerhub_config){ .timers_max = 1u << 16 });
	unsigned with_plain = advised_count();
	struct rig huge = rig_open_config(
		(struct timerhub_config){ .timers_max = 1u << 16, .flags = TIMERHUB_HUGE_PAGES });
	bool supported = access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) == 0;

	expect_eq(with_plain, before);
	if (supported)
		expect_cmp(advised_count(), >, with_plain);
	for (unsigned i = 0; i < 1000; i++)
		arm_after(huge.queue, 1, i);
	for (unsigned i = 0; i < 1000; i++)
		(void)take_one(huge.queue);
	rig_close(&huge);
	rig_close(&plain);
}
