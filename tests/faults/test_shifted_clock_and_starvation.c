/* SPDX-License-Identifier: MIT */
/*
 * In these tests a time namespace shifts the clock, or the CPU is busy when a timer is due. The
 * only permitted effect of these faults is that events are late.
 */
#include "checked_workload.h"
#include "fault_suite.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	int saved_errno = errno;

	if (fd >= 0)
		close(fd);
	errno = saved_errno;
	return written;
}

/* ---- a shifted clock ---- */

/*
 * Shifts the clock of all children that this process forks from now on, by `offset_s` seconds. If
 * the process is not root, it first enters a user namespace.
 */
static bool shift_clock(int offset_s)
{
	char text[64];

	if (unshare(CLONE_NEWTIME) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWTIME) < 0)
		return false;
	snprintf(text, sizeof(text), "monotonic %d 0", offset_s);
	return write_text("/proc/self/timens_offsets", text);
}

static void live_shifted(uint64_t expected_ns)
{
	struct rig rig;
	uint64_t now_ns = monotonic_ns();

	expect(now_ns >= expected_ns && now_ns < expected_ns + 50 * SEC);
	rig = rig_open(512);
	expect_cmp(timerhub_now(rig.hub), >=, now_ns);
	expect_cmp(timerhub_now(rig.hub), <=, monotonic_ns());
	life_live(&rig, scaled(300), 60 * MS);
	owner_rests(rig.hub);
	rig_close(&rig);
}

static void in_namespace(int offset_s)
{
	uint64_t expected_ns = monotonic_ns() + (uint64_t)(int64_t)offset_s * SEC;
	pid_t child;

	if (!shift_clock(offset_s)) {
		faults_skip("time namespace", strerror(errno));
		return;
	}
	faults_count(1);
	child = fork();
	if (child == 0) {
		live_shifted(expected_ns);
		_exit(EXIT_SUCCESS);
	}
	child_ends_well(child);
}

START_TEST(a_shifted_clock_makes_nothing_early_or_lost)
{
	static const int offsets_s[] = { -100, 100 };
	pid_t child = fork();

	if (child == 0) {
		in_namespace(offsets_s[_i]);
		_exit(EXIT_SUCCESS);
	}
	child_ends_well(child);
}
END_TEST

/* ---- a starved CPU ---- */

#define COMPETITORS 3

static atomic_bool competition_over;

static void *compete(void *arg)
{
	while (!atomic_load(&competition_over)) {
	}
	return arg;
}

/* The owner thread has the lowest priority, and on each CPU a busy thread has a higher priority. */
START_TEST(an_owner_that_rarely_runs_loses_nothing)
{
	pthread_t competitors[COMPETITORS];
	struct rig rig = rig_open(512);

	expect_eq(setpriority(PRIO_PROCESS, (id_t)timerhub_owner_tid(rig.hub), 19), 0);
	for (unsigned i = 0; i < COMPETITORS; i++)
		thread_start(&competitors[i], compete, NULL);
	faults_count(1);
	life_live(&rig, scaled(400), 150 * MS);
	atomic_store(&competition_over, true);
	for (unsigned i = 0; i < COMPETITORS; i++)
		thread_join(competitors[i]);
	owner_rests(rig.hub);
	rig_close(&rig);
}
END_TEST

/*
 * Puts the process into a new group that may use the CPU for 5 ms of every 50 ms. Returns false if
 * the system does not permit a group with this quota of CPU time.
 */
static bool enter_group(const char *parent, char *group, size_t size)
{
	char path[PATH_MAX];
	bool entered;

	snprintf(group, size, "%s/timerhub-%d", parent, (int)getpid());
	if (mkdir(group, 0755) < 0)
		return false;
	snprintf(path, sizeof(path), "%s/cpu.max", group);
	entered = write_text(path, "5000 50000");
	if (!entered) {
		snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", group);
		entered = write_text(path, "50000");
		snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", group);
		entered = entered && write_text(path, "5000");
	}
	snprintf(path, sizeof(path), "%s/cgroup.procs", group);
	entered = entered && write_text(path, "0");
	if (!entered)
		(void)rmdir(group);
	return entered;
}

/* Returns the number of periods in which the group has used up its quota of CPU time. */
static unsigned times_throttled(const char *group)
{
	char path[PATH_MAX];
	char line[128];
	unsigned count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/cpu.stat", group);
	file = fopen(path, "re");
	expect(file);
	while (fgets(line, sizeof(line), file))
		(void)sscanf(line, "nr_throttled %u", &count);
	fclose(file);
	return count;
}

/*
 * A busy thread uses up the whole quota of CPU time. Again and again, the process group runs for 5
 * ms and is stopped for 45 ms. If a busy machine has given the group less time than its quota, the
 * test repeats the run.
 */
static void live_on_quota(const char *group)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;
	struct rig rig = rig_open(512);
	pthread_t competitor;

	thread_start(&competitor, compete, NULL);
	do {
		expect(monotonic_ns() < until_ns);
		life_live(&rig, scaled(80), 120 * MS);
	} while (times_throttled(group) == 0);
	atomic_store(&competition_over, true);
	thread_join(competitor);
	owner_rests(rig.hub);
	rig_close(&rig);
}

START_TEST(a_cpu_quota_makes_nothing_early_or_lost)
{
	static const char *const parents[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/cpu" };
	char group[PATH_MAX / 2];
	uint64_t until_ns;
	int pipe_fds[2];
	char name[PATH_MAX / 2] = "";
	pid_t child;

	expect_eq(pipe(pipe_fds), 0);
	child = fork();
	if (child == 0) {
		for (unsigned i = 0; i < COUNT_OF(parents); i++)
			if (enter_group(parents[i], group, sizeof(group))) {
				expect_cmp(write(pipe_fds[1], group, strlen(group)), >, 0);
				live_on_quota(group);
				_exit(EXIT_SUCCESS);
			}
		faults_skip("CPU quota", strerror(errno));
		_exit(EXIT_SUCCESS);
	}
	close(pipe_fds[1]);
	(void)!read(pipe_fds[0], name, sizeof(name) - 1);
	close(pipe_fds[0]);
	child_ends_well(child);
	if (name[0]) {
		expect_cmp(times_throttled(name), >, 0);
		faults_count(times_throttled(name));
	}
	until_ns = monotonic_ns() + ARRIVES;
	while (name[0] && rmdir(name) < 0) {
		expect_eq(errno, EBUSY);
		expect(monotonic_ns() < until_ns);
		sleep_ns(MS);
	}
}
END_TEST

int main(int argc, char **argv)
{
	faults_begin("faults of shifted_clock_and_starvation", argc, argv);
	tests_add_loop(a_shifted_clock_makes_nothing_early_or_lost, 60, 2);
	tests_add(an_owner_that_rarely_runs_loses_nothing, 60);
	tests_add(a_cpu_quota_makes_nothing_early_or_lost, 60);
	return faults_run();
}
