/* SPDX-License-Identifier: MIT */
/*
 * The k-th call of an open is refused, for every k; no memory can be locked; all descriptors are
 * taken. An open works, or fails and leaves nothing; live timers go on. The simulation refuses
 * memory and threads, and tests/service/test_denied.c limits descriptors before the open.
 */
#include "checked_workload.h"
#include "refuse_calls.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define K_MAX 60

struct leftovers {
	unsigned fds;
	unsigned threads;
	uint64_t mapped_kib;
};

static struct leftovers leftovers_now(void)
{
	return (struct leftovers){ process_fd_count(), process_thread_count(),
		                   thread_status(getpid(), "VmSize:", 10) };
}

/* No more descriptors, threads and, without a sanitizer, memory than before. */
static void expect_nothing_left(const struct leftovers *before)
{
	expect_eq(process_fd_count(), before->fds);
	process_settles_at_threads(before->threads);
	if (!sanitized())
		expect_cmp(thread_status(getpid(), "VmSize:", 10), <=, before->mapped_kib);
}

static int open_rig(struct rig *ret_rig, uint32_t flags)
{
	struct timerhub_config config = { .size = sizeof(config),
		                          .flags = flags,
		                          .sleeper = sleeper_asked(),
		                          .cpu_plus_one = thread_first_cpu() + 1,
		                          .timers_max = 256 };
	int result;

	*ret_rig = (struct rig){ NULL, NULL };
	result = timerhub_open(&ret_rig->hub, &config);
	if (result < 0) {
		expect(!ret_rig->hub);
		return result;
	}
	result = timerhub_queue_open(ret_rig->hub, &ret_rig->queue, NULL);
	if (result < 0) {
		expect(!ret_rig->queue);
		rig_close(ret_rig);
	}
	return result;
}

struct shortage {
	int call;
	int error;
	bool fatal;     /* true if the open fails when some k-th call is refused */
	uint32_t flags; /* flags in the config of the hub */
	/* LOW_HUB: 0, 1 and 2 are closed, and the library copies what gets such a number. */
	enum { HUB, LOW_HUB, LOOP, LOOP_WITH_HUB } opened;
};

static const struct shortage shortages[] = {
	{ SCMP_SYS(eventfd2), EMFILE, true, 0, HUB },
	{ SCMP_SYS(eventfd2), ENFILE, true, 0, HUB },
	{ SCMP_SYS(eventfd2), ENOMEM, true, 0, HUB },
	/* of a new stack or the heap */
	{ SCMP_SYS(mprotect), ENOMEM, false, 0, HUB },
	{ SCMP_SYS(sched_setaffinity), EPERM, true, 0, HUB },
	/* the optional thread name and timer slack */
	{ SCMP_SYS(prctl), EPERM, false, 0, HUB },
	{ SCMP_SYS(brk), ENOMEM, false, 0, HUB },
	/* the calls that make the memfd of an observable hub */
	{ SCMP_SYS(memfd_create), EMFILE, true, TIMERHUB_OBSERVABLE, HUB },
	{ SCMP_SYS(ftruncate), ENOSPC, true, TIMERHUB_OBSERVABLE, HUB },
	{ SCMP_SYS(fallocate), ENOSPC, true, TIMERHUB_OBSERVABLE, HUB },
	{ SCMP_SYS(fcntl), EPERM, true, TIMERHUB_OBSERVABLE, HUB },
	{ SCMP_SYS(eventfd2), EMFILE, true, 0, LOW_HUB },
	{ SCMP_SYS(memfd_create), EMFILE, true, TIMERHUB_OBSERVABLE, LOW_HUB },
	/* copies the ring to a higher number, and seals the memfd */
	{ SCMP_SYS(fcntl), EMFILE, true, TIMERHUB_OBSERVABLE, LOW_HUB },
	/* tried again */
	{ SCMP_SYS(memfd_create), EINTR, false, TIMERHUB_OBSERVABLE, HUB },
	{ SCMP_SYS(ftruncate), EINTR, false, TIMERHUB_OBSERVABLE, HUB },
	{ SCMP_SYS(fallocate), EINTR, false, TIMERHUB_OBSERVABLE, HUB },
	{ SCMP_SYS(fcntl), EINTR, false, TIMERHUB_OBSERVABLE, HUB },
	{ SCMP_SYS(sched_setaffinity), EINTR, false, 0, HUB },
	/* A loop needs an eventfd only if it has a hub, for its queue. */
	{ SCMP_SYS(eventfd2), EMFILE, false, 0, LOOP },
	{ SCMP_SYS(eventfd2), EMFILE, true, 0, LOOP_WITH_HUB },
};

/* The timeout is still added at the close. */
static void loop_live(struct timerhub_loop *loop)
{
	struct timerhub_timeout timeout = { .owner = 0 };

	expect_eq(timerhub_timeout_add(loop, &timeout, ignore_timeout), 0);
	expect_eq(timerhub_timeout_set(loop, &timeout, 0), 0);
	expect_eq(timerhub_loop_turn(loop), 1);
	timerhub_loop_close(loop);
}

/* `hub` is a loop's, or NULL. */
static bool open_with_one_refusal(const struct shortage *shortage, struct timerhub *hub, unsigned k,
                                  bool *failed)
{
	struct leftovers before = leftovers_now();
	struct rig rig = { NULL, NULL };
	struct timerhub_loop *loop = NULL;
	unsigned fired;
	int result;

	refuse_some(shortage->error, k, 1);
	result = shortage->opened <= LOW_HUB ? open_rig(&rig, shortage->flags)
	                                     : timerhub_loop_open(&loop, hub, NULL);
	fired = refuse_no_more();
	if (result == 0) {
		if (loop)
			loop_live(loop);
		else
			life_live(&rig, 12, 2 * MS);
		rig_close(&rig);
	} else {
		expect(!loop);
		if (fired == 0 && uring_ran_out(result))
			test_skips("io_uring", -result);
		expect_eq(result, -shortage->error);
		*failed = true;
	}
	expect_nothing_left(&before);
	return fired > 0;
}

/* The first hub maps what the process keeps, such as the C library's heaps. */
static void warm_up(uint32_t flags)
{
	for (unsigned i = 0; i < 3; i++) {
		struct rig rig;

		expect_eq(open_rig(&rig, flags), 0);
		life_live(&rig, 12, 2 * MS);
		rig_close(&rig);
	}
	(void)process_threads_at_rest();
}

static void refuse_each(const struct shortage *shortage)
{
	struct rig rig = { NULL, NULL };
	bool failed = false;
	unsigned k = 1;

	for (int fd = 0; shortage->opened == LOW_HUB && fd <= STDERR_FILENO; fd++)
		expect_eq(close(fd), 0);
	warm_up(shortage->flags);
	if (shortage->opened == LOOP_WITH_HUB)
		expect_eq(open_rig(&rig, TIMERHUB_MANUAL), 0);
	count_calls(shortage->call);
	while (k <= K_MAX && open_with_one_refusal(shortage, rig.hub, k, &failed))
		k++;
	expect_eq(failed, shortage->fatal);
	rig_close(&rig);
}

/* In a child that ends by _exit(): a sanitizer's calls at the exit might be refused. */
TEST_LOOP(refused_at_the_kth_call_open_leaves_nothing, 60, COUNT_OF(shortages))
{
	pid_t child = fork();

	if (child == 0) {
		refuse_each(&shortages[_i]);
		_exit(EXIT_SUCCESS);
	}
	child_ends_well(child);
}

TEST(board_that_cannot_be_mapped_leaves_nothing, 60)
{
	struct leftovers before;
	struct rig rig;

	warm_up(TIMERHUB_OBSERVABLE);
	before = leftovers_now();
	refuse_calls_if(SCMP_SYS(mmap), ENOMEM,
	                &SCMP_A3_64(SCMP_CMP_MASKED_EQ, MAP_SHARED, MAP_SHARED));
	expect_eq(open_rig(&rig, TIMERHUB_OBSERVABLE), -ENOMEM);
	expect_nothing_left(&before);
}

/* Root may lock any amount of memory. False if the kernel refuses. */
static bool become_nobody(void)
{
	if (geteuid() != 0)
		return true;
	if (setgroups(0, NULL) < 0 || setgid(65534) < 0 || setuid(65534) < 0) {
		(void)puts("skipped: memory to lock: cannot leave root");
		return false;
	}
	/* else the files of /proc/self belong to root */
	expect_eq(prctl(PR_SET_DUMPABLE, 1), 0);
	return true;
}

static void live_without_locked_memory(void)
{
	struct rig rig;
	int result;

	if (!become_nobody())
		return;
	expect_eq(setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ 0, 0 }), 0);
	result = open_rig(&rig, 0);
	if (result == 0) {
		life_live(&rig, 100, 10 * MS);
		owner_rests(rig.hub);
		rig_close(&rig);
	} else {
		expect_eq(sleeper_asked(), TIMERHUB_SLEEPER_URING);
		expect_eq(result, -ENOMEM);
	}
	expect_eq(setenv("TIMERHUB_TEST_SLEEPER", "auto", 1), 0);
	rig = rig_open(256);
	life_live(&rig, 100, 10 * MS);
	owner_rests(rig.hub);
	rig_close(&rig);
}

TEST(without_memory_to_lock_auto_still_works, 60)
{
	pid_t child = fork();

	if (child == 0) {
		live_without_locked_memory();
		_exit(EXIT_SUCCESS);
	}
	child_ends_well(child);
}

static void expect_no_queue(struct timerhub *hub)
{
	struct timerhub_queue *queue = NULL;

	expect_eq(timerhub_queue_open(hub, &queue, NULL), -EMFILE);
	expect(!queue);
}

TEST(without_descriptors_left_life_goes_on, 60)
{
	struct rig rig = rig_open(256);
	int taken[64];
	unsigned count = 0;

	(void)process_limit_fds(64);
	while (count < COUNT_OF(taken) && (taken[count] = open("/dev/null", O_RDONLY)) >= 0)
		count++;
	expect_eq(errno, EMFILE);
	life_live(&rig, 100, 10 * MS);
	expect_no_queue(rig.hub);
	while (count > 0)
		close(taken[--count]);
	timerhub_queue_close(queue_open(rig.hub));
	life_live(&rig, 100, 10 * MS);
	owner_rests(rig.hub);
	rig_close(&rig);
}

/* A sandbox sets the limit to 0, and ppoll() refuses to wait for even one. */
TEST(without_any_descriptor_allowed_life_goes_on, 60)
{
	struct rig rig = rig_open(256);
	rlim_t before = process_limit_fds(0);

	life_live(&rig, 100, 10 * MS);
	owner_only_naps(rig.hub);
	expect_no_queue(rig.hub);
	(void)process_limit_fds(before);
	life_live(&rig, 50, 5 * MS);
	owner_rests(rig.hub);
	rig_close(&rig);
}
