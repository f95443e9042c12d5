/* SPDX-License-Identifier: MIT */
/*
 * The announcer: each post is one completion in somebody else's ring, whatever errno was before,
 * and none when he has closed it. A kernel that refuses io_uring, or posting, is reported as such.
 */
#include "harness.h"

#include <errno.h>
#include <liburing.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "announcer.h"

#define USER_DATA 0x123456789abcdefu

struct rig {
	struct io_uring ring;
	struct announcer *announcer;
};

/* False, with the reason printed, if it cannot be had here. */
static bool rig_open(struct rig *rig, unsigned flags)
{
	int result = io_uring_queue_init(64, &rig->ring, flags);

	if (result == 0) {
		result = announcer_open(&rig->announcer, rig->ring.ring_fd, USER_DATA);
		if (result == 0)
			return true;
		io_uring_queue_exit(&rig->ring);
	}
	/* Nothing else may be the matter. */
	expect(result == -EPERM || result == -ENOSYS || result == -EOPNOTSUPP);
	printf("skipped: io_uring refused, %d\n", result);
	return false;
}

static void rig_close(struct rig *rig)
{
	announcer_close(rig->announcer);
	io_uring_queue_exit(&rig->ring);
}

/* Exactly one completion has come, and it says `count`. */
static void expect_one(struct rig *rig, unsigned count)
{
	struct io_uring_cqe *cqe = NULL;

	expect_eq(io_uring_peek_cqe(&rig->ring, &cqe), 0);
	expect_eq(cqe->user_data, USER_DATA);
	expect_eq(cqe->res, count);
	io_uring_cqe_seen(&rig->ring, cqe);
	expect_eq(io_uring_peek_cqe(&rig->ring, &cqe), -EAGAIN);
}

START_TEST(each_post_is_one_completion)
{
	struct rig rig;

	if (!rig_open(&rig, 0))
		return;
	for (unsigned count = 1; count < 1000; count++) {
		announcer_post(rig.announcer, count);
		expect_one(&rig, count);
	}
	announcer_post(rig.announcer, UINT32_MAX);
	expect_one(&rig, INT32_MAX);
	rig_close(&rig);
}
END_TEST

/* What the thread's last call left there is no sign of a closed ring, and stays as it is. */
START_TEST(errno_of_before_is_neither_read_nor_changed)
{
	static const int errors[] = { 0, EBADF, EINTR, EAGAIN };
	struct rig rig;

	if (!rig_open(&rig, 0))
		return;
	for (unsigned i = 0; i < COUNT_OF(errors); i++) {
		errno = errors[i];
		announcer_post(rig.announcer, 7);
		expect_eq(errno, errors[i]);
		expect_one(&rig, 7);
	}
	rig_close(&rig);
}
END_TEST

START_TEST(full_completion_queue_hurts_nobody)
{
	struct rig rig;
	struct io_uring_cqe *cqe;
	unsigned found = 0;

	if (!rig_open(&rig, 0))
		return;
	for (unsigned i = 0; i < 1000; i++)
		announcer_post(rig.announcer, 1);
	while (io_uring_peek_cqe(&rig.ring, &cqe) == 0) {
		expect_eq(cqe->user_data, USER_DATA);
		io_uring_cqe_seen(&rig.ring, cqe);
		found++;
	}
	expect_le(64, found);
	announcer_post(rig.announcer, 5);
	expect_one(&rig, 5);
	rig_close(&rig);
}
END_TEST

/* The ring lives on for us alone: what is posted then would pile up in it. */
START_TEST(closed_ring_gets_nothing_more)
{
	struct rig rig;
	struct io_uring_cqe *cqe;
	int kept;

	if (!rig_open(&rig, 0))
		return;
	kept = rig.ring.ring_fd;
	expect_eq(close(kept), 0);
	errno = 0;
	announcer_post(rig.announcer, 1);
	expect_eq(errno, 0);
	expect_eq(io_uring_peek_cqe(&rig.ring, &cqe), -EAGAIN); /* still mapped */
	/* The number names something else now. */
	expect_eq(eventfd(0, EFD_CLOEXEC), kept);
	announcer_post(rig.announcer, 1);
	expect_eq(io_uring_peek_cqe(&rig.ring, &cqe), -EAGAIN);
	announcer_close(rig.announcer);
}
END_TEST

START_TEST(no_descriptor_is_left)
{
	int before = dup(0);
	struct rig rig;

	expect_eq(close(before), 0);
	if (!rig_open(&rig, 0))
		return;
	rig_close(&rig);
	for (int i = 0; i < 4; i++)
		expect_eq(dup(0), before + i);
}
END_TEST

START_TEST(what_is_no_ring_is_refused)
{
	struct announcer *announcer = NULL;
	int fd = eventfd(0, EFD_CLOEXEC);
	int result;

	(void)close(STDIN_FILENO); /* so that our own descriptor is number 0 */
	result = announcer_open(&announcer, fd, USER_DATA);
	expect(result == -EINVAL || result == -EPERM || result == -ENOSYS);
	expect_eq(announcer_open(&announcer, -1, USER_DATA), -EBADF);
	expect(!announcer);
	/* No descriptor was left behind. */
	expect_eq(dup(fd), STDIN_FILENO);
	announcer_close(NULL);
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("announcer", argc, argv);
	tests_add(each_post_is_one_completion, 20);
	tests_add(errno_of_before_is_neither_read_nor_changed, 20);
	tests_add(full_completion_queue_hurts_nobody, 20);
	tests_add(closed_ring_gets_nothing_more, 20);
	tests_add(no_descriptor_is_left, 20);
	tests_add(what_is_no_ring_is_refused, 20);
	return tests_run();
}
