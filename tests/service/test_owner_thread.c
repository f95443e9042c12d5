/* SPDX-License-Identifier: MIT */
/*
 * Law 12: the owner has a name, blocks all signals but faults and changes no handler; and the
 * options that concern it.
 */
#include "refuse_calls.h"
#include "rig.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rig open_named(const char *name)
{
	return rig_open_config((struct timerhub_config){ .timers_max = 64, .thread_name = name });
}

TEST(owner_is_named, 60)
{
	static const struct {
		const char *asked;
		const char *got;
	} cases[] = { { NULL, "timerhub" },
		      { "clockwork", "clockwork" },
		      { "exactly-fifteen", "exactly-fifteen" },
		      { "more-than-fifteen-bytes", "more-than-fiftee" } };

	unsigned threads = process_threads_at_rest();

	for (unsigned i = 0; i < COUNT_OF(cases); i++) {
		char got[16] = "";
		struct rig rig;

		strncpy(got, cases[i].got, sizeof(got) - 1);
		expect_eq(thread_find(got), 0);
		rig = open_named(cases[i].asked);
		expect(thread_find(got) != 0);
		expect_eq(timerhub_owner_tid(rig.hub), thread_find(got));
		expect_eq(process_thread_count(), threads + 1);
		rig_close(&rig);
		process_settles_at_threads(threads);
	}
}

/* The kernel kills the process if a thread blocks a signal that its own instruction raises. */
static const int faults[] = { SIGSYS, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP };

static bool is_fault(int signal)
{
	for (unsigned i = 0; i < COUNT_OF(faults); i++)
		if (faults[i] == signal)
			return true;
	return false;
}

/* Even if the thread that opens the hub blocks all. */
TEST_LOOP(owner_blocks_all_signals_but_faults, 30, 2)
{
	struct rig rig;
	uint64_t blocked;
	sigset_t all;

	sigfillset(&all);
	if (_i == 1)
		expect_eq(pthread_sigmask(SIG_BLOCK, &all, NULL), 0);
	rig = open_named("deaf");
	blocked = thread_status(thread_find("deaf"), "SigBlk:", 16);
	for (int signal = 1; signal <= 64; signal++) {
		bool reserved = signal == SIGKILL || signal == SIGSTOP ||
		                /* signal numbers that the C library uses itself */
		                (signal > SIGSYS && signal < SIGRTMIN);

		expect(reserved || (blocked >> (signal - 1) & 1) != is_fault(signal));
	}
	rig_close(&rig);
}

struct signal_state {
	struct sigaction actions[65];
	sigset_t mask;
	sigset_t pending;
};

static void signal_state_read(struct signal_state *state)
{
	memset(state, 0, sizeof(*state));
	for (int signal = 1; signal <= 64; signal++)
		(void)sigaction(signal, NULL, &state->actions[signal]);
	expect_eq(pthread_sigmask(SIG_BLOCK, NULL, &state->mask), 0);
	expect_eq(sigpending(&state->pending), 0);
}

static void expect_signals_as(const struct signal_state *before)
{
	struct signal_state now;

	signal_state_read(&now);
	for (int signal = 1; signal <= 64; signal++) {
		expect(now.actions[signal].sa_handler == before->actions[signal].sa_handler);
		expect_eq(now.actions[signal].sa_flags, before->actions[signal].sa_flags);
		expect_eq(sigismember(&now.mask, signal), sigismember(&before->mask, signal));
		expect_eq(sigismember(&now.pending, signal), sigismember(&before->pending, signal));
	}
}

TEST(owner_leaves_the_process_signals_alone, 30)
{
	struct signal_state before;
	sigset_t some;
	struct rig rig;

	sigemptyset(&some);
	sigaddset(&some, SIGUSR1);
	sigaddset(&some, SIGPIPE);
	sigaddset(&some, SIGSYS);
	expect_eq(pthread_sigmask(SIG_BLOCK, &some, NULL), 0);
	signal_state_read(&before);
	rig = rig_open(64);
	expect_signals_as(&before);
	for (unsigned i = 0; i < 20; i++) {
		arm_after(rig.queue, i * 10 * US, i);
		take_one(rig.queue);
	}
	expect_signals_as(&before);
	rig_close(&rig);
	expect_signals_as(&before);
}

/* The end of an io_uring ring interrupts a call of the thread that has created it. */
TEST(owner_interrupts_no_call_of_its_opener, 30)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct rig rig = rig_open(64);
	struct epoll_event event;

	rig_close(&rig);
	expect_eq(epoll_wait(epoll, &event, 1, 300), 0);
	close(epoll);
}

/* Pinned to each CPU of the process in turn, or free on all. */
TEST(owner_runs_where_it_was_told, 60)
{
	cpu_set_t allowed;
	cpu_set_t got;
	struct rig rig;
	unsigned threads = process_threads_at_rest();

	expect_eq(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		rig = rig_open_config((struct timerhub_config){
			.timers_max = 4, .cpu_plus_one = cpu + 1, .thread_name = "pinned" });
		expect_eq(sched_getaffinity(thread_find("pinned"), sizeof(got), &got), 0);
		expect_eq(CPU_COUNT(&got), 1);
		expect(CPU_ISSET(cpu, &got));
		arm_after(rig.queue, 0, cpu);
		expect_eq(take_one(rig.queue).data, cpu);
		rig_close(&rig);
		process_settles_at_threads(threads);
	}
	rig = open_named("free");
	expect_eq(sched_getaffinity(thread_find("free"), sizeof(got), &got), 0);
	expect(CPU_EQUAL(&got, &allowed));
	expect_eq(sched_getaffinity(0, sizeof(got), &got), 0);
	expect(CPU_EQUAL(&got, &allowed));
	rig_close(&rig);
}

/* ---- the owner is the process's ---- */

/* The settings of a thread in the scheduler. */
struct scheduling {
	int policy;
	int priority;
	int nice;
	cpu_set_t cpus;
};

static struct scheduling scheduling_of(pid_t tid)
{
	struct scheduling known = { .policy = sched_getscheduler(tid) };
	struct sched_param param;

	expect_eq(sched_getparam(tid, &param), 0);
	known.priority = param.sched_priority;
	known.nice = getpriority(PRIO_PROCESS, (id_t)tid);
	expect_eq(sched_getaffinity(tid, sizeof(known.cpus), &known.cpus), 0);
	return known;
}

/* Returns whether the kernel lets the calling thread be so. */
static bool be_scheduled(int policy, int priority, int nice)
{
	struct sched_param param = { .sched_priority = priority };

	return sched_setscheduler(0, policy, &param) == 0 &&
	       setpriority(PRIO_PROCESS, (id_t)gettid(), nice) == 0;
}

static struct opener {
	int policy, priority, nice; /* of the thread that opens the hub */
	unsigned cpu_plus_one;
	enum { NOTHING, ALL, SMALL_SETS } refuses;
	struct rig rig;
	struct scheduling owner;
} opener;

/* For this thread and those that it starts. */
static void refuse_scheduling(void)
{
	static const int calls[] = { SCMP_SYS(sched_getaffinity),  SCMP_SYS(sched_setaffinity),
		                     SCMP_SYS(sched_getscheduler), SCMP_SYS(sched_setscheduler),
		                     SCMP_SYS(sched_getparam),     SCMP_SYS(getpriority),
		                     SCMP_SYS(setpriority) };
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	expect(filter);
	/* a sanitizer makes the first of the calls when a thread starts, so it stays allowed */
	for (unsigned i = sanitized(); opener.refuses == ALL && i < COUNT_OF(calls); i++)
		expect_eq(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), calls[i], 0), 0);
	if (opener.refuses == SMALL_SETS)
		expect_eq(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EINVAL), calls[0], 1,
		                           SCMP_A1(SCMP_CMP_LT, 8192 / 8, 0)),
		          0);
	expect_eq(seccomp_load(filter), 0);
	seccomp_release(filter);
}

/* Pinned to one CPU. */
static void *open_from_a_worker(void *arg)
{
	thread_pin();
	(void)be_scheduled(opener.policy, opener.priority, opener.nice);
	if (opener.refuses != NOTHING)
		refuse_scheduling();
	opener.rig = rig_open_config(
		(struct timerhub_config){ .timers_max = 4, .cpu_plus_one = opener.cpu_plus_one });
	arm_after(opener.rig.queue, 0, 1);
	expect_eq(take_one(opener.rig.queue).data, 1);
	return arg;
}

static void open_from(struct opener by)
{
	pthread_t worker;

	opener = by;
	thread_start(&worker, open_from_a_worker, NULL);
	thread_join(worker);
	opener.owner = scheduling_of(timerhub_owner_tid(opener.rig.hub));
	rig_close(&opener.rig);
}

static void expect_owner(int policy, int priority, int nice)
{
	expect_eq(opener.owner.policy, policy);
	expect_eq(opener.owner.priority, priority);
	expect_eq(opener.owner.nice, nice);
}

/* A container's superuser may not; then this thread stays as nice as possible. */
static bool may_become_less_nice(void)
{
	int nice = getpriority(PRIO_PROCESS, 0);

	expect_eq(setpriority(PRIO_PROCESS, 0, 19), 0);
	return setpriority(PRIO_PROCESS, 0, nice) == 0;
}

/* The owner has the main thread's scheduling, not that of the worker that opens the hub. */
TEST(owner_is_like_the_main_thread, 30)
{
	bool may_be_less_nice = may_become_less_nice();
	struct scheduling mine = scheduling_of(getpid());

	open_from((struct opener){ .policy = SCHED_FIFO, .priority = 1 });
	expect_owner(mine.policy, mine.priority, mine.nice);
	expect(CPU_EQUAL(&opener.owner.cpus, &mine.cpus));
	open_from((struct opener){ .policy = SCHED_BATCH, .nice = 19 });
	expect_eq(opener.owner.policy, mine.policy);
	if (may_be_less_nice)
		expect_owner(mine.policy, mine.priority, mine.nice);
	open_from((struct opener){
		.policy = SCHED_FIFO, .priority = 1, .cpu_plus_one = thread_first_cpu() + 1 });
	expect_owner(mine.policy, mine.priority, mine.nice);
	expect_eq(CPU_COUNT(&opener.owner.cpus), 1);
}

/* The owner is real-time like the main thread, unless that has set SCHED_RESET_ON_FORK. */
TEST(owner_of_a_real_time_main_thread, 30)
{
	if (be_scheduled(SCHED_RR, 3, -5)) {
		open_from((struct opener){ .policy = SCHED_OTHER, .nice = 3 });
		expect_owner(SCHED_RR, 3, -5);
	}
	if (be_scheduled(SCHED_RR | SCHED_RESET_ON_FORK, 3, -5)) {
		open_from((struct opener){ .policy = SCHED_FIFO, .priority = 1 });
		expect_owner(SCHED_OTHER, 0, 0);
	}
	if (be_scheduled(SCHED_BATCH | SCHED_RESET_ON_FORK, 0, -5)) {
		open_from((struct opener){ .policy = SCHED_OTHER, .nice = 3 });
		expect_owner(SCHED_BATCH, 0, 0);
	}
}

static bool is_zombie(pid_t tid)
{
	char path[64], state = '?';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	file = fopen(path, "re");
	expect(file);
	expect_eq(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
	fclose(file);
	return state == 'Z';
}

static void *check_without_a_main_thread(void *arg)
{
	const struct scheduling *mine = arg;

	while (!is_zombie(getpid()))
		sleep_ns(MS);
	open_from_a_worker(NULL);
	opener.owner = scheduling_of(timerhub_owner_tid(opener.rig.hub));
	expect_owner(mine->policy, mine->priority, mine->nice);
	expect(CPU_EQUAL(&opener.owner.cpus, &mine->cpus));
	_exit(EXIT_SUCCESS);
}

/* The owner gets the main thread's scheduling even if that thread has called pthread_exit(). */
TEST(owner_after_the_end_of_the_main_thread, 30)
{
	static struct scheduling mine;
	pid_t child = fork();

	if (child == 0) {
		pthread_t worker;

		mine = scheduling_of(getpid());
		opener = (struct opener){ .policy = SCHED_FIFO, .priority = 1 };
		thread_start(&worker, check_without_a_main_thread, &mine);
		pthread_exit(NULL);
	}
	child_ends_well(child);
}

/* A hub opens although scheduling calls fail: all, or (as with 8,192 CPUs) those of small sets. */
TEST(owner_works_where_scheduling_is_refused, 30)
{
	struct scheduling mine = scheduling_of(getpid());

	open_from((struct opener){ .policy = SCHED_FIFO, .priority = 1, .refuses = ALL });
	open_from((struct opener){ .policy = SCHED_FIFO, .priority = 1, .refuses = SMALL_SETS });
	expect(CPU_EQUAL(&opener.owner.cpus, &mine.cpus));
}

/* ---- cpusets ---- */

static char cpuset[128]; /* a control group that this test makes */

static bool cpuset_write(const char *name, const char *text)
{
	char path[192];
	bool written;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", cpuset, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return written;
}

/* The superuser may, where control groups are mounted (of version 1, or 2). */
static void cpuset_make(const char *cpus)
{
	static const char *const roots[] = { "/sys/fs/cgroup/cpuset", "/sys/fs/cgroup" };
	int error = ENOTSUP;

	for (unsigned i = 0; i < COUNT_OF(roots); i++) {
		snprintf(cpuset, sizeof(cpuset), "%s/timerhub-test-%d", roots[i], getpid());
		if (mkdir(cpuset, 0755) < 0) {
			error = errno;
			continue;
		}
		(void)cpuset_write("cpuset.mems", "0"); /* version 2 needs none */
		if (cpuset_write("cpuset.cpus", cpus))
			return;
		error = errno;
		(void)rmdir(cpuset);
	}
	test_skips("a cpuset", error);
}

static void cpuset_remove(void)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;

	while (rmdir(cpuset) <
	       0) { /* its last process has ended, but the kernel may not know yet */
		expect_eq(errno, EBUSY);
		expect(monotonic_ns() < until_ns);
		sleep_ns(MS);
	}
}

static void cpuset_become(const char *cpus, unsigned count)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;

	expect(cpuset_write("cpuset.cpus", cpus));
	for (;;) {
		struct scheduling mine = scheduling_of(getpid());

		if (CPU_COUNT(&mine.cpus) == (int)count)
			return;
		expect(monotonic_ns() < until_ns);
		sleep_ns(MS);
	}
}

static void *open_hub(void *arg)
{
	if (arg)
		thread_pin();
	opener.rig = rig_open(4);
	return NULL;
}

static _Noreturn void open_in_a_cpuset(bool pinned, const char *wide, unsigned wide_count)
{
	char pid[16];
	pthread_t worker;
	struct scheduling mine, owner;

	snprintf(pid, sizeof(pid), "%d", getpid());
	if (!cpuset_write("cgroup.procs", pid))
		test_skips("the move into a cpuset", errno);
	thread_start(&worker, open_hub, pinned ? &worker : NULL);
	thread_join(worker);
	cpuset_become(wide, wide_count);
	mine = scheduling_of(getpid());
	owner = scheduling_of(timerhub_owner_tid(opener.rig.hub));
	expect(CPU_EQUAL(&mine.cpus, &owner.cpus));
	rig_close(&opener.rig);
	_exit(EXIT_SUCCESS);
}

/*
 * A container gets more CPUs while it runs: its main thread may use them, and so may the owner. In
 * the second run the worker that opens the hub has a mask of its own, which the owner does not
 * keep.
 */
TEST_LOOP(owner_follows_a_widened_cpuset, 60, 2)
{
	static const char *const cpus[] = { "0", "0-1", "0-2" };
	unsigned wide_count = (unsigned)_i + 2;
	int status;
	pid_t child;

	if (sysconf(_SC_NPROCESSORS_ONLN) < wide_count) {
		printf("skipped: this machine has fewer than %u processors\n", wide_count);
		return;
	}
	cpuset_make(cpus[_i + 1]);
	expect(cpuset_write("cpuset.cpus", cpus[_i]));
	child = fork();
	expect_cmp(child, >=, 0);
	if (child == 0)
		open_in_a_cpuset(_i == 1, cpus[_i + 1], wide_count);
	expect_eq(waitpid(child, &status, 0), child);
	cpuset_remove();
	expect_eq(status, 0);
}

/* An owner that starts with the right CPUs sets no mask, which would not grow with a cpuset. */
TEST(owner_like_its_opener_sets_no_mask, 30)
{
	pthread_t worker;

	if (sanitized()) /* may set one by itself */
		return;
	filter_calls(SCMP_ACT_KILL_PROCESS, SCMP_SYS(sched_setaffinity), NULL);
	thread_start(&worker, open_hub, NULL);
	thread_join(worker);
	rig_close(&opener.rig);
}
