/* SPDX-License-Identifier: MIT */
/*
 * Hubs on the boot clock and the wall clock, also in time namespaces that are days away: the value,
 * the owner's sleep, no event early. The simulation sets the wall clock.
 */
#include "refuse_calls.h"
#include "rig.h"

#include <timerhub_loop.h>

#include <dirent.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REFUSED 77 /* exit status if the kernel refuses a time namespace */

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

static const struct {
	uint32_t clock;
	clockid_t id;
	int settime_flags; /* with which the owner calls timerfd_settime(); -1: it has no timerfd */
} clocks[] = {
	{ TIMERHUB_CLOCK_MONOTONIC, CLOCK_MONOTONIC, -1 },
	{ TIMERHUB_CLOCK_BOOTTIME, CLOCK_BOOTTIME, 0 },
	{ TIMERHUB_CLOCK_REALTIME, CLOCK_REALTIME, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET },
};

static struct rig rig_clock(uint32_t clock)
{
	return rig_open_config((struct timerhub_config){ .clock = clock, .timers_max = 1000 });
}

/* Arms timers by delay and by absolute time, and checks that no event comes before its deadline. */
static void expire_some(struct rig *rig, clockid_t id)
{
	struct dice dice = dice_new((uint64_t)id);
	unsigned count = scaled(200);

	for (unsigned i = 0; i < count; i++) {
		uint64_t delay_ns = dice_magnitude(&dice, 25);

		if (i % 2)
			arm_after(rig->queue, delay_ns, i);
		else
			arm_at(rig->queue, clock_ns(id) + delay_ns, i);
	}
	for (unsigned i = 0; i < count; i++) {
		struct timerhub_event event = take_one(rig->queue);

		expect_cmp(event.expires_ns, <=, clock_ns(id));
	}
	expect_empty(rig->queue);
}

/* With a spin too. */
TEST_LOOP(never_early_by_the_clock_of_the_hub, 60, 2 * COUNT_OF(clocks))
{
	struct rig rig =
		rig_open_config((struct timerhub_config){ .clock = clocks[_i / 2].clock,
	                                                  .timers_max = 1000,
	                                                  .spin_ns = _i % 2 == 1 ? 100 * US : 0 });

	expire_some(&rig, clocks[_i / 2].id);
	rig_close(&rig);
}

/* Returns the value in the line "KEY: value" of the descriptor's fdinfo, or -1. */
static long fdinfo(int fd, const char *key)
{
	char path[64], line[128];
	long value = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	while (file && value < 0 && fgets(line, sizeof(line), file))
		if (!strncmp(line, key, strlen(key)) && line[strlen(key)] == ':')
			value = strtol(line + strlen(key) + 1, NULL, strstr(key, "flags") ? 8 : 10);
	if (file)
		fclose(file);
	return value;
}

/* The kernel reports that the clock is set only on an armed timerfd. */
static bool timerfd_is_set(int fd)
{
	char path[64], line[128];
	unsigned long long s, ns;
	bool set = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	expect(file);
	while (fgets(line, sizeof(line), file))
		set |= sscanf(line, "it_value: (%llu, %llu)", &s, &ns) == 2 && s + ns > 0;
	fclose(file);
	return set;
}

/* Returns the descriptor of the process's only timerfd, or -1. */
static int timerfd_find(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int found = -1;

	expect(dir);
	for (struct dirent *entry; (entry = readdir(dir));) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] == '.' || fdinfo(fd, "clockid") < 0)
			continue;
		expect_eq(found, -1);
		found = fd;
	}
	closedir(dir);
	return found;
}

/* If the clock can jump, the owner sleeps on a timerfd: a plain timeout would end too late. */
TEST_LOOP(owner_sleeps_on_a_timer_of_the_clock, 60, COUNT_OF(clocks))
{
	struct rig rig = rig_clock(clocks[_i].clock);
	uint64_t wakeups;
	int fd;

	for (unsigned armed = 0; armed < 2; armed++) {
		if (armed)
			arm_after(rig.queue, HOUR, 0);
		wakeups = stats_settled(rig.hub).owner_wakeups;
		fd = timerfd_find();
		if (clocks[_i].settime_flags < 0) {
			expect_eq(fd, -1);
			continue;
		}
		expect_cmp(fd, >=, 0);
		expect_eq(fdinfo(fd, "clockid"), clocks[_i].id);
		expect_eq(fdinfo(fd, "settime flags"), clocks[_i].settime_flags);
		expect(timerfd_is_set(fd));
		expect(!fd_readable(fd));
		expect_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
		expect_eq(stats_of(rig.hub).owner_wakeups, wakeups);
	}
	rig_close(&rig);
	expect_eq(timerfd_find(), -1);
}

/* ---- without timerfds ---- */

TEST_LOOP(denied_timerfd_is_told_at_open, 30, COUNT_OF(clocks))
{
	struct timerhub_config config = { .size = sizeof(config),
		                          .clock = clocks[_i].clock,
		                          .sleeper = sleeper_asked() };
	bool wanted = clocks[_i].settime_flags >= 0;
	unsigned fds = process_fd_count();
	struct timerhub *hub = NULL;

	refuse_calls(SCMP_SYS(timerfd_create), EPERM);
	expect_eq(hub_open(&hub, &config), wanted ? -EPERM : 0);
	expect_eq(hub == NULL, wanted);
	timerhub_close(hub);
	expect_eq(process_fd_count(), fds);
}

/*
 * Refused while the owner sleeps on it: it expires and can't be set again, and the owner must still
 * sleep, and look at the clock only now and then.
 */
TEST_LOOP(denied_setting_of_the_timerfd_under_way_burns_nothing, 60, COUNT_OF(clocks))
{
	struct rig rig = rig_clock(clocks[_i].clock);
	uint64_t wakeups, begin_ns;

	arm_after(rig.queue, 200 * MS, 0);
	arm_after(rig.queue, HOUR, 1);
	(void)stats_settled(rig.hub);
	refuse_calls(SCMP_SYS(timerfd_settime), EPERM);
	expect_eq(take_one(rig.queue).data, 0);
	begin_ns = monotonic_ns();
	wakeups = stats_of(rig.hub).owner_wakeups;
	sleep_ns(500 * MS);
	wakeups = stats_of(rig.hub).owner_wakeups - wakeups;
	expect_cmp(wakeups, <=, 5 + (monotonic_ns() - begin_ns) / SEC);
	expire_some(&rig, clocks[_i].id);
	rig_close(&rig);
}

/* ---- a time namespace ---- */

/* False: the kernel refused the namespace. */
static bool child_tried(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		expect_eq(errno, EINTR);
	expect(WIFEXITED(status));
	if (WEXITSTATUS(status) == REFUSED)
		return false;
	expect_eq(WEXITSTATUS(status), 0);
	return true;
}

/* Gives later children a new time namespace. Only the superuser needs no user namespace for it. */
static int namespace_make(void)
{
	return unshare(CLONE_NEWTIME) < 0 ? unshare(CLONE_NEWUSER | CLONE_NEWTIME) : 0;
}

static void namespace_set(const char *clock, int64_t ahead_s)
{
	char offset[64];
	int length = snprintf(offset, sizeof(offset), "%s %lld 0\n", clock, (long long)ahead_s);
	int fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, offset, (size_t)length) != length)
		_exit(REFUSED);
	close(fd);
}

/*
 * In a child whose boot and monotonic clocks are `ahead_s` ahead; the wall clock is everywhere the
 * same. False if the kernel refuses.
 */
static bool in_namespace(int64_t ahead_s, void (*within)(int64_t ahead_s))
{
	pid_t parent = fork();

	if (parent == 0) {
		pid_t child;

		if (namespace_make() < 0)
			_exit(REFUSED);
		namespace_set("boottime", ahead_s);
		namespace_set("monotonic", ahead_s);
		child = fork(); /* this child is the first process inside the namespace */
		if (child == 0) {
			within(ahead_s);
			_exit(0);
		}
		child_ends_well(child);
		_exit(0);
	}
	return child_tried(parent);
}

static uint64_t outside_ns[COUNT_OF(clocks)];

static void within_namespace_by(unsigned clock, int64_t ahead_s)
{
	struct rig rig = rig_clock(clocks[clock].clock);
	struct timerhub_event event;
	uint64_t start_ns;

	if (clocks[clock].id == CLOCK_REALTIME)
		ahead_s = 0;
	expect_cmp(timerhub_now(rig.hub), >=, outside_ns[clock] + (uint64_t)ahead_s * SEC);
	/* the test takes less than HOUR */
	expect_cmp(timerhub_now(rig.hub), <, outside_ns[clock] + (uint64_t)ahead_s * SEC + HOUR);
	expire_some(&rig, clocks[clock].id);
	start_ns = monotonic_ns();
	arm_after(rig.queue, 100 * MS, 'X');
	expect_eq(timerhub_wait(rig.queue, &event, 1, ARRIVES), 1);
	expect_cmp(monotonic_ns() - start_ns, >=, 100 * MS);
	rig_close(&rig);
}

static void within_namespace(int64_t ahead_s)
{
	for (unsigned i = 0; i < COUNT_OF(clocks); i++)
		within_namespace_by(i, ahead_s);
}

/* Ahead in one run, behind by half of the uptime in the other: no clock may be below 0. */
TEST_LOOP(every_clock_is_right_in_a_time_namespace, 60, 2)
{
	int64_t ahead_s = _i == 0 ? 300000 : -(int64_t)(clock_ns(CLOCK_MONOTONIC) / SEC / 2);

	for (unsigned i = 0; i < COUNT_OF(clocks); i++)
		outside_ns[i] = clock_ns(clocks[i].id);
	if (!in_namespace(ahead_s, within_namespace))
		printf("skipped: no time namespace may be made here\n");
}

#define DEADLINE_MAX ((UINT64_C(1) << 63) - 128)

/* Read memory that another thread may write, unseen by ThreadSanitizer. */
static void peek(const void *from, void *into, size_t bytes)
{
	struct iovec local = { .iov_base = into, .iov_len = bytes };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)from, .iov_len = bytes };

	expect_eq(process_vm_readv(getpid(), &local, 1, &remote, 1, 0), bytes);
}

/* Returns the timeout of the owner's system call, or 0 if it has none or the kernel hides it. */
static uint64_t asked_of_the_clock_ns(pid_t owner)
{
	struct io_uring_getevents_arg wait;
	struct timespec time = { 0 };
	unsigned long words[5];
	const void *at = NULL;
	char path[64];
	long call = -1;
	FILE *file;
	int read;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)owner);
	file = fopen(path, "re");
	if (!file)
		return 0;
	read = fscanf(file, "%ld %lx %lx %lx %lx %lx", &call, &words[0], &words[1], &words[2],
	              &words[3], &words[4]);
	fclose(file);
	if (read == 6 && call == SYS_ppoll)
		at = (const void *)words[2];
	if (read == 6 && call == SYS_io_uring_enter) {
		peek((const void *)words[4], &wait, sizeof(wait));
		at = (const void *)(uintptr_t)wait.ts;
	}
	if (at)
		peek(at, &time, sizeof(time));
	return (uint64_t)time.tv_sec * SEC + (uint64_t)time.tv_nsec;
}

/* Idle, and with a timer that never comes. */
static void owner_rests_on(unsigned clock, uint64_t deadline_ns)
{
	struct rig rig = rig_clock(clocks[clock].clock);
	uint64_t wakeups;
	int fd;

	if (deadline_ns != UINT64_MAX)
		arm_at(rig.queue, deadline_ns, 0);
	wakeups = stats_settled(rig.hub).owner_wakeups;
	sleep_ns(150 * MS);
	expect_eq(stats_of(rig.hub).owner_wakeups, wakeups);
	expect_eq(stats_of(rig.hub).clock_jumps, 0);
	fd = timerfd_find();
	expect(fd < 0 || timerfd_is_set(fd));
	expect_cmp(asked_of_the_clock_ns(timerhub_owner_tid(rig.hub)), <=, UINT64_C(1) << 62);
	rig_close(&rig);
}

static unsigned timeouts_called;

static void timeout_comes(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	(void)loop;
	(void)timeout;
	timeouts_called++;
}

/* Once a loop's only timeout has been called, its descriptor stays unreadable. */
static void loop_rests_on(unsigned clock)
{
	struct timerhub_loop_config config = { .size = sizeof(config),
		                               .clock = clocks[clock].clock };
	struct timerhub_timeout timeout = { .owner = 0 };
	struct timerhub_loop *loop;
	int fd;

	expect_eq(timerhub_loop_open(&loop, NULL, &config), 0);
	fd = timerhub_loop_fd(loop);
	expect_cmp(fd, >=, 0);
	expect_eq(timerhub_timeout_add(loop, &timeout, timeout_comes), 0);
	expect_eq(timerhub_timeout_set(loop, &timeout, MS), 0);
	timeouts_called = 0;
	while (timerhub_loop_turn(loop) >= 0 && timeouts_called == 0)
		expect(fd_readable_within(fd, ARRIVES));
	expect(timerfd_is_set(fd));
	expect(!fd_readable_within(fd, 150 * MS));
	timerhub_loop_close(loop);
}

static void rest_on_every_clock(int64_t ahead_s)
{
	(void)ahead_s;
	for (unsigned i = 0; i < COUNT_OF(clocks); i++) {
		owner_rests_on(i, UINT64_MAX);
		owner_rests_on(i, DEADLINE_MAX);
		loop_rests_on(i);
	}
}

/*
 * An idle owner or loop sleeps on in every time namespace. The kernel subtracts the offset from an
 * absolute time, and adds its clock to a relative one: beyond 2^63 ns the sleep would end at once.
 */
TEST_LOOP(quiet_in_every_time_namespace, 60, 3)
{
	static const int64_t aheads_s[] = { 0, -5, 300000 };

	if (aheads_s[_i] == 0)
		rest_on_every_clock(0);
	else if (!in_namespace(aheads_s[_i], rest_on_every_clock))
		printf("skipped: no time namespace may be made here\n");
}
