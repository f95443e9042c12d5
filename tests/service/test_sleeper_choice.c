/* SPDX-License-Identifier: MIT */
/* TIMERHUB_SLEEPER counts only where the config says AUTO; TIMERHUB_HUGE_PAGES is advice. */
#include "rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <timerhub_loop.h>
#include <unistd.h>

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
}

TEST(environment_of_other_values_is_ignored, 30)
{
	static const char *const values[] = { "", "auto", "POLL", "poll ", "polls", "2", "urin" };
	int best;

	expect_eq(unsetenv("TIMERHUB_SLEEPER"), 0);
	best = sleeper_of(TIMERHUB_SLEEPER_AUTO, 0);
	for (unsigned i = 0; i < COUNT_OF(values); i++) {
		expect_eq(setenv("TIMERHUB_SLEEPER", values[i], 1), 0);
		expect_eq(sleeper_of(TIMERHUB_SLEEPER_AUTO, 0), best);
	}
	expect_eq(setenv("TIMERHUB_SLEEPER", "uring", 1), 0);
	expect_eq(sleeper_of(TIMERHUB_SLEEPER_AUTO, TIMERHUB_MANUAL), TIMERHUB_SLEEPER_AUTO);
}

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

/* A hub of each kind, without the owner's thread, whose stack is the C library's; a loop. */
TEST(huge_pages_are_refused_if_nobody_asks, 60)
{
	uint64_t before_kib = open_to_huge_pages_kib();
	struct rig rig = rig_manual(0), shown = rig_open_config((struct timerhub_config){
						.flags = TIMERHUB_MANUAL | TIMERHUB_OBSERVABLE });
	struct timerhub_loop *loop;

	/* a sanitizer maps memory of its own */
	if (sanitized())
		return;
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

/* ---- the owner's thread id ---- */

TEST(owner_tid_is_that_of_the_thread, 30)
{
	struct rig rig = rig_open_config(
		(struct timerhub_config){ .timers_max = 4, .thread_name = "tid-test" });
	struct rig manual = rig_manual(4);
	pid_t child;

	expect_eq(timerhub_owner_tid(rig.hub), thread_find("tid-test"));
	expect_eq(timerhub_owner_tid(manual.hub), -EINVAL);
	expect_eq(timerhub_owner_tid(NULL), -EINVAL);
	child = fork();
	if (child == 0)
		_exit(timerhub_owner_tid(rig.hub) == -EOWNERDEAD ? 0 : 1);
	child_ends_well(child);
	rig_close(&manual);
	rig_close(&rig);
}

int main(int argc, char **argv)
{
	tests_begin(argc, argv);
	/* decides for the whole program, so that AUTO is the same in all tests */
	(void)uring_refused();
	return tests_run();
}
