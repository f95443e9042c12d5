/* SPDX-License-Identifier: MIT */
/*
 * A queue attached to the caller's own io_uring: one completion for each time that the queue gets
 * events after it was empty or was left with some; none after detaching; nothing lost whatever
 * becomes of the ring. On manual hubs where completions are counted, on real ones where a lost one
 * is a hang. Every test runs on a plain ring and on a deferred one.
 */
#include "rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <liburing.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <seccomp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define USER_DATA UINT64_C(0xfeedfacecafebeef)

static const unsigned kinds[] = {
	0,
	IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
};
#define KINDS ((int)COUNT_OF(kinds))

static void ring_open(struct io_uring *ring, int kind)
{
	expect_eq(io_uring_queue_init(8, ring, kinds[kind]), 0);
}

/* Takes the completions that are there; each must be ours. Returns how many. */
static unsigned ring_take(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	unsigned count = 0;

	/* Entering flushes what overflowed, and what is deferred to us. */
	for (;;) {
		expect_eq(io_uring_get_events(ring), 0);
		if (io_uring_peek_cqe(ring, &cqe) < 0)
			return count;
		expect(cqe->user_data == USER_DATA);
		expect_cmp(cqe->res, >=, 1);
		io_uring_cqe_seen(ring, cqe);
		count++;
	}
}

static uint64_t now_ns; /* of the manual hub of this test */

static struct rig rig_attached(struct io_uring *ring, int kind)
{
	struct rig rig = rig_manual(4096);

	now_ns = 0;
	ring_open(ring, kind);
	expect_eq(timerhub_queue_attach_uring(rig.queue, ring->ring_fd, USER_DATA), 0);
	return rig;
}

START_TEST(attached_ring_gets_one_completion_for_each_time_that_events_come)
{
	struct io_uring ring;
	struct rig rig = rig_attached(&ring, _i);
	int fd = timerhub_queue_fd(rig.queue);

	expect_eq(ring_take(&ring), 0);
	for (unsigned i = 0; i < 5; i++) {
		arm_and_expire(&rig, &now_ns, 5);
		arm_and_expire(&rig, &now_ns, 3);
		expect_eq(ring_take(&ring), 1);
		expect(fd_readable(fd));
		arm_and_expire(&rig, &now_ns, 1);
		expect_eq(ring_take(&ring), 0);
		expect_eq(take_up_to(rig.queue, 64), 9);
		expect(!fd_readable(fd));
		expect_eq(take_up_to(rig.queue, 64), 0);
		expect_eq(ring_take(&ring), 0);
	}
	rig_close(&rig);
	expect_eq(ring_take(&ring), 0);
	io_uring_queue_exit(&ring);
}
END_TEST

START_TEST(attached_ring_is_told_how_many_wait)
{
	struct io_uring ring;
	struct rig rig = rig_attached(&ring, _i);
	struct io_uring_cqe *cqe;

	arm_and_expire(&rig, &now_ns, 7);
	expect_eq(io_uring_wait_cqe(&ring, &cqe), 0);
	expect_eq(cqe->res, 7);
	io_uring_cqe_seen(&ring, cqe);
	expect_eq(take_up_to(rig.queue, 5), 5);
	expect_eq(io_uring_wait_cqe(&ring, &cqe), 0);
	expect_eq(cqe->res, 2);
	io_uring_cqe_seen(&ring, cqe);
	rig_close(&rig);
	io_uring_queue_exit(&ring);
}
END_TEST

START_TEST(attached_ring_gets_another_completion_when_some_are_left)
{
	struct io_uring ring;
	struct rig rig = rig_attached(&ring, _i);

	arm_and_expire(&rig, &now_ns, 10);
	for (unsigned i = 0; i < 4; i++) {
		expect_eq(ring_take(&ring), 1);
		if (i % 2)
			expect_eq(timerhub_dispatch(rig.queue, 2), 2);
		else
			expect_eq(take_up_to(rig.queue, 2), 2);
	}
	expect_eq(ring_take(&ring), 1);
	expect_eq(take_up_to(rig.queue, 64), 2);
	expect_eq(ring_take(&ring), 0);
	arm_and_expire(&rig, &now_ns, 1);
	expect_eq(ring_take(&ring), 1);
	rig_close(&rig);
	io_uring_queue_exit(&ring);
}
END_TEST

START_TEST(attaching_announces_what_waits_already)
{
	struct rig rig = rig_manual(64);
	struct io_uring ring;

	now_ns = 0;
	ring_open(&ring, _i);
	arm_and_expire(&rig, &now_ns, 3);
	expect_eq(timerhub_queue_attach_uring(rig.queue, ring.ring_fd, USER_DATA), 0);
	expect_eq(ring_take(&ring), 1);
	expect_eq(take_up_to(rig.queue, 64), 3);
	expect_eq(ring_take(&ring), 0);
	rig_close(&rig);
	io_uring_queue_exit(&ring);
}
END_TEST

START_TEST(detached_ring_gets_nothing_and_the_fd_goes_on)
{
	struct io_uring ring, other;
	struct rig rig = rig_attached(&ring, _i);
	unsigned fds = process_fd_count();

	ring_open(&other, _i);
	for (unsigned i = 0; i < 3; i++) {
		expect_eq(timerhub_queue_attach_uring(rig.queue, other.ring_fd, 1), -EBUSY);
		expect_eq(timerhub_queue_detach_uring(rig.queue), 0);
		expect_eq(timerhub_queue_detach_uring(rig.queue), -ENOENT);
		arm_and_expire(&rig, &now_ns, 2);
		expect_eq(ring_take(&ring), 0);
		expect(fd_readable(timerhub_queue_fd(rig.queue)));
		expect_eq(take_up_to(rig.queue, 64), 2);
		expect_eq(timerhub_queue_attach_uring(rig.queue, other.ring_fd, USER_DATA), 0);
		arm_and_expire(&rig, &now_ns, 2);
		expect_eq(ring_take(&other), 1);
		expect_eq(take_up_to(rig.queue, 64), 2);
		expect_eq(timerhub_queue_detach_uring(rig.queue), 0);
		expect_eq(timerhub_queue_attach_uring(rig.queue, ring.ring_fd, USER_DATA), 0);
		arm_and_expire(&rig, &now_ns, 1);
		expect_eq(ring_take(&ring), 1);
		expect_eq(ring_take(&other), 0);
		expect_eq(take_up_to(rig.queue, 64), 1);
	}
	expect_eq(process_fd_count(), fds + 1); /* that of the other ring */
	rig_close(&rig);
	io_uring_queue_exit(&ring);
	io_uring_queue_exit(&other);
}
END_TEST

/* The kernel's count of all completions ever posted to our io_urings, but for that of `but_fd`. */
static uint64_t process_posted(int but_fd)
{
	DIR *dir = opendir("/proc/self/fdinfo");
	uint64_t posted = 0;

	expect(dir);
	for (struct dirent *entry; (entry = readdir(dir));) {
		char path[300], line[128];
		unsigned tail;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", entry->d_name);
		file = atoi(entry->d_name) == but_fd ? NULL : fopen(path, "re");
		while (file && fgets(line, sizeof(line), file))
			if (sscanf(line, "CqTail: %u", &tail) == 1)
				posted += tail;
		if (file)
			fclose(file);
	}
	closedir(dir);
	return posted;
}

/* The descriptor is closed without detaching, and its number goes to a ring that never asked. */
START_TEST(ring_closed_under_us_loses_nothing_and_hits_no_stranger)
{
	struct io_uring ring, stranger;
	struct rig rig = rig_attached(&ring, _i);
	int fd = ring.ring_fd;
	uint64_t posted;

	arm_and_expire(&rig, &now_ns, 1);
	expect_eq(ring_take(&ring), 1);
	expect_eq(take_up_to(rig.queue, 64), 1);
	expect_cmp(process_posted(-1), >=, 2); /* it is looked at by both of its descriptors */
	io_uring_queue_exit(&ring);
	posted = process_posted(-1);
	expect_cmp(posted, >=, 1); /* ours is still there */
	for (unsigned i = 0; i < 100; i++) {
		if (i == 50) {
			ring_open(&stranger, _i);
			expect_eq(stranger.ring_fd, fd);
		}
		arm_and_expire(&rig, &now_ns, 2);
		expect(fd_readable(timerhub_queue_fd(rig.queue)));
		expect_eq(take_up_to(rig.queue, 1), 1);
		expect(fd_readable(timerhub_queue_fd(rig.queue)));
		expect_eq(take_up_to(rig.queue, 64), 1);
		expect(!fd_readable(timerhub_queue_fd(rig.queue)));
	}
	expect_eq(ring_take(&stranger), 0);
	expect_eq(process_posted(fd), posted);
	expect_eq(timerhub_queue_detach_uring(rig.queue), 0);
	expect_eq(timerhub_queue_attach_uring(rig.queue, stranger.ring_fd, USER_DATA), 0);
	arm_and_expire(&rig, &now_ns, 1);
	expect_eq(ring_take(&stranger), 1);
	rig_close(&rig);
	io_uring_queue_exit(&stranger);
}
END_TEST

START_TEST(full_ring_loses_nothing)
{
	struct io_uring ring;
	struct rig rig = rig_attached(&ring, _i); /* of 16 completions */
	unsigned rounds = 100;

	for (unsigned i = 0; i < rounds; i++) {
		arm_and_expire(&rig, &now_ns, 3);
		expect(fd_readable(timerhub_queue_fd(rig.queue)));
		expect_eq(take_up_to(rig.queue, 64), 3);
		expect(!fd_readable(timerhub_queue_fd(rig.queue)));
	}
	expect_eq(ring_take(&ring), rounds);
	arm_and_expire(&rig, &now_ns, 3);
	expect_eq(ring_take(&ring), 1);
	rig_close(&rig);
	io_uring_queue_exit(&ring);
}
END_TEST

START_TEST(misuse_of_attach_is_answered)
{
	struct rig rig = rig_manual(4);
	unsigned fds = process_fd_count();
	struct io_uring ring;
	int file = open("/dev/null", O_RDWR | O_CLOEXEC);

	expect_eq(timerhub_queue_attach_uring(NULL, 0, 0), -EINVAL);
	expect_eq(timerhub_queue_detach_uring(NULL), -EINVAL);
	expect_eq(timerhub_queue_attach_uring(rig.queue, -1, 0), -EBADF);
	expect_eq(timerhub_queue_attach_uring(rig.queue, INT_MAX, 0), -EBADF);
	expect_eq(timerhub_queue_attach_uring(rig.queue, file, 0), -EINVAL);
	expect_eq(timerhub_queue_attach_uring(rig.queue, timerhub_queue_fd(rig.queue), 0), -EINVAL);
	expect_eq(timerhub_queue_detach_uring(rig.queue), -ENOENT);
	close(file);
	expect_eq(timerhub_queue_attach_uring(rig.queue, file, 0), -EBADF);
	expect_eq(process_fd_count(), fds);
	ring_open(&ring, _i);
	expect_eq(timerhub_queue_attach_uring(rig.queue, ring.ring_fd, 0), 0);
	rig_close(&rig);
	io_uring_queue_exit(&ring);
}
END_TEST

START_TEST(attached_queue_in_a_forked_child_is_the_parents)
{
	struct io_uring ring;
	struct rig rig = rig_attached(&ring, _i);
	pid_t child;

	arm_and_expire(&rig, &now_ns, 1);
	expect_eq(ring_take(&ring), 1);
	child = fork();
	if (child == 0) {
		expect_eq(timerhub_queue_attach_uring(rig.queue, ring.ring_fd, 1), -EOWNERDEAD);
		expect_eq(timerhub_queue_detach_uring(rig.queue), -EOWNERDEAD);
		timerhub_close(rig.hub);
		_exit(0);
	}
	child_ends_well(child);
	expect_eq(ring_take(&ring), 0);
	expect_eq(take_up_to(rig.queue, 64), 1);
	arm_and_expire(&rig, &now_ns, 1);
	expect_eq(ring_take(&ring), 1);
	rig_close(&rig);
	io_uring_queue_exit(&ring);
}
END_TEST

static void deny(int call, int error, unsigned index, uint64_t argument)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	expect(filter);
	expect_eq(seccomp_rule_add(filter, SCMP_ACT_ERRNO((unsigned)error), call, 1,
	                           SCMP_CMP(index, SCMP_CMP_EQ, argument, 0)),
	          0);
	expect_eq(seccomp_load(filter), 0);
	seccomp_release(filter);
}

/* An old kernel cannot say that it posts to other rings: it does not know the question. */
START_TEST(denied_attaching_says_why)
{
	struct rig rig = rig_manual(4);
	unsigned fds;
	struct io_uring ring;

	ring_open(&ring, _i);
	fds = process_fd_count();
	deny(SCMP_SYS(io_uring_register), EINVAL, 3, 256); /* a probe of all operations */
	expect_eq(timerhub_queue_attach_uring(rig.queue, ring.ring_fd, 0), -EOPNOTSUPP);
	deny(SCMP_SYS(io_uring_setup), EPERM, 0, 1);
	expect_eq(timerhub_queue_attach_uring(rig.queue, ring.ring_fd, 0), -EPERM);
	expect_eq(process_fd_count(), fds);
	expect_eq(timerhub_queue_detach_uring(rig.queue), -ENOENT);
	rig_close(&rig);
	io_uring_queue_exit(&ring);
}
END_TEST

/* Nobody tells whose the number is now; but we hold the ring by one of our own. */
START_TEST(denied_kcmp_hits_no_stranger)
{
	struct io_uring ring, stranger;
	struct rig rig = rig_attached(&ring, _i);
	int fd = ring.ring_fd;

	deny(SCMP_SYS(kcmp), EPERM, 2, KCMP_FILE);
	arm_and_expire(&rig, &now_ns, 1);
	expect_eq(ring_take(&ring), 1);
	expect_eq(take_up_to(rig.queue, 64), 1);
	io_uring_queue_exit(&ring);
	ring_open(&stranger, _i);
	expect_eq(stranger.ring_fd, fd);
	for (unsigned i = 0; i < 100; i++) {
		arm_and_expire(&rig, &now_ns, 2);
		expect(fd_readable(timerhub_queue_fd(rig.queue)));
		expect_eq(take_up_to(rig.queue, 64), 2);
		expect(!fd_readable(timerhub_queue_fd(rig.queue)));
	}
	expect_eq(ring_take(&stranger), 0);
	rig_close(&rig);
	io_uring_queue_exit(&stranger);
}
END_TEST

/* Refused later on: no completions, and the fd tells all. */
START_TEST(denied_posting_leaves_the_fd_true)
{
	struct io_uring ring;
	struct rig rig = rig_attached(&ring, _i);

	deny(SCMP_SYS(io_uring_enter), EPERM, 1, 1);
	for (unsigned i = 0; i < 3; i++) {
		arm_and_expire(&rig, &now_ns, 2);
		expect(fd_readable(timerhub_queue_fd(rig.queue)));
		expect_eq(take_up_to(rig.queue, 1), 1);
		expect(fd_readable(timerhub_queue_fd(rig.queue)));
		expect_eq(take_up_to(rig.queue, 2), 1);
		expect(!fd_readable(timerhub_queue_fd(rig.queue)));
	}
	rig_close(&rig);
	io_uring_queue_exit(&ring);
}
END_TEST

/* ---- with an owner thread, where a lost completion is a hang ---- */

static unsigned wanted;

static void *arm_singly(void *arg)
{
	struct rig *rig = arg;
	struct dice dice = dice_new(1);

	for (unsigned i = 0; i < wanted; i++) {
		arm_after(rig->queue, dice_magnitude(&dice, 18), i);
		if (dice_below(&dice, 8) == 0)
			sleep_ns(dice_magnitude(&dice, 18));
	}
	return NULL;
}

/* Until a completion came; it must come. */
static void ring_sleep(struct io_uring *ring)
{
	struct __kernel_timespec arrives = { .tv_sec = ARRIVES / SEC };
	struct io_uring_cqe *cqe;
	int result;

	do
		result = io_uring_wait_cqe_timeout(ring, &cqe, &arrives);
	while (result == -EINTR);
	expect_eq(result, 0);
	expect(cqe->user_data == USER_DATA);
	io_uring_cqe_seen(ring, cqe);
}

static void run_single(int kind, unsigned max)
{
	struct rig rig = rig_open(0);
	struct io_uring ring;
	pthread_t armer;

	wanted = scaled(3000);
	ring_open(&ring, kind);
	expect_eq(timerhub_queue_attach_uring(rig.queue, ring.ring_fd, USER_DATA), 0);
	thread_start(&armer, arm_singly, &rig);
	for (unsigned taken = 0; taken < wanted;) {
		int count;

		ring_sleep(&ring);
		count = take_up_to(rig.queue, max);
		expect(count >= 0);
		taken += (unsigned)count;
	}
	thread_join(armer);
	rig_close(&rig);
	io_uring_queue_exit(&ring);
}

START_TEST(attached_ring_wakes_its_thread)
{
	run_single(_i, 64);
}
END_TEST

START_TEST(attached_ring_wakes_its_thread_for_what_it_left)
{
	run_single(_i, 1);
}
END_TEST

/* Others drain as well, and leave events behind: whoever does that posts. */
static atomic_uint crowd_taken;

static void *drain_singly(void *arg)
{
	struct rig *rig = arg;

	while (atomic_load(&crowd_taken) < wanted) {
		int count;

		if (!fd_readable_within(timerhub_queue_fd(rig->queue), MS))
			continue;
		count = take_up_to(rig->queue, 1);
		expect(count >= 0);
		atomic_fetch_add(&crowd_taken, (unsigned)count);
	}
	return NULL;
}

START_TEST(attached_ring_hears_of_what_others_leave)
{
	struct rig rig = rig_open(0);
	struct io_uring ring;
	pthread_t armer, drainers[2];

	wanted = scaled(4000);
	ring_open(&ring, _i);
	expect_eq(timerhub_queue_attach_uring(rig.queue, ring.ring_fd, USER_DATA), 0);
	for (unsigned i = 0; i < COUNT_OF(drainers); i++)
		thread_start(&drainers[i], drain_singly, &rig);
	thread_start(&armer, arm_singly, &rig);
	while (atomic_load(&crowd_taken) < wanted) {
		struct io_uring_cqe *cqe;
		struct __kernel_timespec while_ = { .tv_nsec = 10 * MS };

		if (io_uring_wait_cqe_timeout(&ring, &cqe, &while_) == 0) {
			io_uring_cqe_seen(&ring, cqe);
			atomic_fetch_add(&crowd_taken, (unsigned)take_up_to(rig.queue, 2));
		}
	}
	thread_join(armer);
	for (unsigned i = 0; i < COUNT_OF(drainers); i++)
		thread_join(drainers[i]);
	expect_eq(atomic_load(&crowd_taken), wanted);
	expect_empty(rig.queue);
	rig_close(&rig);
	io_uring_queue_exit(&ring);
}
END_TEST

static atomic_bool told;      /* to arm no more */
static atomic_bool all_armed; /* nobody does */
static atomic_uint crowd_armed;

/* A few are always on their way. */
static void *arm_until_told(void *arg)
{
	struct rig *rig = arg;
	struct dice dice = dice_new(2);

	while (!atomic_load(&told)) {
		if (atomic_load(&crowd_armed) - atomic_load(&crowd_taken) < 32) {
			arm_after(rig->queue, dice_magnitude(&dice, 16), 0);
			atomic_fetch_add(&crowd_armed, 1);
		} else {
			sleep_ns(10 * US);
		}
	}
	return NULL;
}

static void *drain_until_all_taken(void *arg)
{
	struct rig *rig = arg;

	while (!atomic_load(&all_armed) || atomic_load(&crowd_taken) != atomic_load(&crowd_armed)) {
		int count = 0;

		if (fd_readable_within(timerhub_queue_fd(rig->queue), MS))
			count = take_up_to(rig->queue, 1);
		expect(count >= 0);
		atomic_fetch_add(&crowd_taken, (unsigned)count);
	}
	return NULL;
}

/* Attached and detached all the time: when detach is back, nothing more comes. */
START_TEST(detaching_while_others_post)
{
	struct rig rig = rig_open(0);
	struct io_uring ring;
	pthread_t armer, drainer;
	unsigned fds = process_fd_count(), rounds = scaled(200), posted = 0;

	ring_open(&ring, _i);
	thread_start(&armer, arm_until_told, &rig);
	thread_start(&drainer, drain_until_all_taken, &rig);
	/* Until it was seen to work while they post, however slow they are. */
	for (unsigned i = 0; i < rounds || posted == 0; i++) {
		expect_eq(timerhub_queue_attach_uring(rig.queue, ring.ring_fd, USER_DATA), 0);
		sleep_ns(100 * US);
		expect_eq(timerhub_queue_detach_uring(rig.queue), 0);
		posted += ring_take(&ring);
		sleep_ns(100 * US);
		expect_eq(ring_take(&ring), 0);
	}
	atomic_store(&told, true);
	thread_join(armer);
	atomic_store(&all_armed, true);
	thread_join(drainer);
	expect_empty(rig.queue);
	expect_eq(process_fd_count(), fds + 1);
	rig_close(&rig);
	io_uring_queue_exit(&ring);
}
END_TEST

int main(int argc, char **argv)
{
	rigs_begin("attach", argc, argv);
	if (uring_refused()) {
		printf("skipped: io_uring: errno %d\n", uring_refused());
		return 77;
	}
	tests_add_loop(attached_ring_gets_one_completion_for_each_time_that_events_come, 30, KINDS);
	tests_add_loop(attached_ring_is_told_how_many_wait, 30, KINDS);
	tests_add_loop(attached_ring_gets_another_completion_when_some_are_left, 30, KINDS);
	tests_add_loop(attaching_announces_what_waits_already, 30, KINDS);
	tests_add_loop(detached_ring_gets_nothing_and_the_fd_goes_on, 30, KINDS);
	tests_add_loop(ring_closed_under_us_loses_nothing_and_hits_no_stranger, 30, KINDS);
	tests_add_loop(full_ring_loses_nothing, 30, KINDS);
	tests_add_loop(misuse_of_attach_is_answered, 30, KINDS);
	tests_add_loop(attached_queue_in_a_forked_child_is_the_parents, 30, KINDS);
	tests_add_loop(denied_attaching_says_why, 30, KINDS);
	tests_add_loop(denied_kcmp_hits_no_stranger, 30, KINDS);
	tests_add_loop(denied_posting_leaves_the_fd_true, 30, KINDS);
	tests_add_loop(attached_ring_wakes_its_thread, 60, KINDS);
	tests_add_loop(attached_ring_wakes_its_thread_for_what_it_left, 60, KINDS);
	tests_add_loop(attached_ring_hears_of_what_others_leave, 60, KINDS);
	tests_add_loop(detaching_while_others_post, 60, KINDS);
	return tests_run();
}
