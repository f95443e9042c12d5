/* SPDX-License-Identifier: MIT */
/*
 * Law 9 for a program's io_uring, plain and deferred (IORING_SETUP_DEFER_TASKRUN), that polls a
 * queue's eventfd by timerhub_uring.h: nothing is lost when the poll ends, or ring or queue is
 * closed. Manual hubs count completions.
 */
#include "rig.h"

#include <stdio.h>
#include <string.h>
#include <timerhub_uring.h>
#include <unistd.h>

#define ON_QUEUE UINT64_C(0xfeedfacecafebeef)
#define ON_OTHER UINT64_C(1)

enum { RING_ENTRIES = 8, RING_COMPLETIONS = 2 * RING_ENTRIES };

static const unsigned kinds[] = {
	0,
	IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
};

static void ring_open(struct io_uring *ring, int kind)
{
	int result = io_uring_queue_init(RING_ENTRIES, ring, kinds[kind]);

	/* before Linux 6.1 there are plain rings only */
	if (uring_refused() || (kind == 1 && result == -EINVAL))
		test_skips("io_uring", uring_refused() ? uring_refused() : -result);
	expect_eq(result, 0);
}

static struct io_uring_sqe *ring_request(struct io_uring *ring, uint64_t user_data)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	expect(sqe);
	io_uring_sqe_set_data64(sqe, user_data);
	return sqe;
}

static void ring_poll(struct io_uring *ring, struct timerhub_queue *queue)
{
	timerhub_uring_prep(ring_request(ring, ON_QUEUE), queue);
	expect_eq(io_uring_submit(ring), 1);
}

/* False: none. */
static bool ring_next(struct io_uring *ring, struct io_uring_cqe *ret_cqe)
{
	struct io_uring_cqe *cqe;

	/* makes the kernel post completions that have overflowed or were deferred */
	expect_eq(io_uring_get_events(ring), 0);
	if (io_uring_peek_cqe(ring, &cqe) < 0)
		return false;
	*ret_cqe = *cqe;
	io_uring_cqe_seen(ring, cqe);
	return true;
}

/* Takes all completions and returns how many. Each must say that the poll goes on. */
static unsigned ring_take(struct io_uring *ring)
{
	struct io_uring_cqe cqe;
	unsigned count = 0;

	for (; ring_next(ring, &cqe); count++) {
		expect(cqe.user_data == ON_QUEUE);
		expect_eq(cqe.res, POLLIN);
		expect(!timerhub_uring_ended(&cqe));
	}
	return count;
}

/* Takes the completion that ends the poll, and checks that it has this result and is the last. */
static void ring_ends(struct io_uring *ring, int result)
{
	struct io_uring_cqe cqe;

	expect(ring_next(ring, &cqe));
	expect(cqe.user_data == ON_QUEUE);
	expect_eq(cqe.res, result);
	expect(timerhub_uring_ended(&cqe));
	expect(!ring_next(ring, &cqe));
}

/* Cancels the poll of this ring. */
static void ring_cancel(struct io_uring *ring)
{
	struct io_uring_sqe *sqe = ring_request(ring, ON_OTHER);

	io_uring_prep_cancel64(sqe, ON_QUEUE, 0);
	sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
	expect_eq(io_uring_submit(ring), 1);
	ring_ends(ring, -ECANCELED);
}

static uint64_t now_ns; /* time of the manual hub of the running test */

static struct rig rig_polled(struct io_uring *ring, int kind)
{
	struct rig rig = rig_manual(4096);

	now_ns = 0;
	ring_open(ring, kind);
	ring_poll(ring, rig.queue);
	return rig;
}

static void rig_close_polled(struct rig *rig, struct io_uring *ring)
{
	rig_close(rig);
	io_uring_queue_exit(ring);
}

TEST_LOOP(poll_completes_each_time_that_events_come, 30, COUNT_OF(kinds))
{
	struct io_uring ring;
	struct rig rig = rig_polled(&ring, _i);
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

/* After a drain that leaves events, the poll completes again, although polls notice only edges. */
TEST_LOOP(poll_completes_again_when_some_are_left, 30, COUNT_OF(kinds))
{
	struct io_uring ring;
	struct rig rig = rig_polled(&ring, _i);

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
	rig_close_polled(&rig, &ring);
}

/* Two rings poll one queue; the cancelled poll reports its end, the other goes on. */
TEST_LOOP(cancelled_poll_ends_and_the_fd_goes_on, 30, COUNT_OF(kinds))
{
	struct io_uring ring, other;
	struct rig rig = rig_polled(&ring, _i);

	ring_open(&other, _i);
	for (unsigned i = 0; i < 3; i++) {
		ring_poll(&other, rig.queue);
		arm_and_expire(&rig, &now_ns, 2);
		expect_eq(ring_take(&ring), 1);
		expect_eq(ring_take(&other), 1);
		expect_eq(take_up_to(rig.queue, 64), 2);
		ring_cancel(&ring);
		arm_and_expire(&rig, &now_ns, 2);
		expect_eq(ring_take(&ring), 0);
		expect_eq(ring_take(&other), 1);
		ring_cancel(&other);
		expect(fd_readable(timerhub_queue_fd(rig.queue)));
		ring_poll(&ring, rig.queue);
		expect_eq(ring_take(&ring), 1);
		expect_eq(take_up_to(rig.queue, 64), 2);
	}
	rig_close_polled(&rig, &ring);
	io_uring_queue_exit(&other);
}

static void ring_fill(struct io_uring *ring)
{
	for (unsigned i = 0; i < RING_COMPLETIONS; i++) {
		io_uring_prep_nop(ring_request(ring, ON_OTHER));
		expect_eq(io_uring_submit(ring), 1);
	}
	expect_eq(io_uring_get_events(ring), 0);
	expect_eq(io_uring_cq_ready(ring), RING_COMPLETIONS);
}

/* The kernel ends the poll. */
TEST_LOOP(full_ring_ends_the_poll_and_loses_nothing, 30, COUNT_OF(kinds))
{
	struct io_uring ring;
	struct rig rig = rig_polled(&ring, _i);
	struct io_uring_cqe cqe;

	for (unsigned i = 0; i < 5; i++) {
		ring_fill(&ring);
		arm_and_expire(&rig, &now_ns, 3);
		expect_eq(io_uring_get_events(&ring), 0);
		for (unsigned k = 0; k < RING_COMPLETIONS; k++) {
			expect(ring_next(&ring, &cqe));
			expect_eq(cqe.user_data, ON_OTHER);
		}
		ring_ends(&ring, POLLIN);
		expect_eq(take_up_to(rig.queue, 1), 1);
		expect_eq(ring_take(&ring), 0);
		ring_poll(&ring, rig.queue);
		expect_eq(ring_take(&ring), 1);
		expect_eq(take_up_to(rig.queue, 64), 2);
		arm_and_expire(&rig, &now_ns, 1);
		expect_eq(ring_take(&ring), 1);
		expect_eq(take_up_to(rig.queue, 64), 1);
	}
	rig_close_polled(&rig, &ring);
}

/* A new ring with the closed one's number gets nothing of its poll. */
TEST_LOOP(closed_ring_loses_nothing_and_hits_no_stranger, 30, COUNT_OF(kinds))
{
	struct io_uring ring, stranger;
	struct rig rig = rig_polled(&ring, _i);
	int fd = ring.ring_fd;

	arm_and_expire(&rig, &now_ns, 1);
	expect_eq(ring_take(&ring), 1);
	expect_eq(take_up_to(rig.queue, 64), 1);
	io_uring_queue_exit(&ring);
	ring_open(&stranger, _i);
	expect_eq(stranger.ring_fd, fd);
	for (unsigned i = 0; i < 50; i++) {
		arm_and_expire(&rig, &now_ns, 2);
		expect(fd_readable(timerhub_queue_fd(rig.queue)));
		expect_eq(take_up_to(rig.queue, 1), 1);
		expect(fd_readable(timerhub_queue_fd(rig.queue)));
		expect_eq(take_up_to(rig.queue, 64), 1);
		expect(!fd_readable(timerhub_queue_fd(rig.queue)));
	}
	expect_eq(ring_take(&stranger), 0);
	ring_poll(&stranger, rig.queue);
	arm_and_expire(&rig, &now_ns, 1);
	expect_eq(ring_take(&stranger), 1);
	rig_close(&rig);
	io_uring_queue_exit(&stranger);
}

/* The poll watches the closed queue's eventfd, not the new one with its number. */
TEST_LOOP(closed_queue_leaves_a_silent_poll, 30, COUNT_OF(kinds))
{
	struct io_uring ring;
	struct rig rig = rig_polled(&ring, _i);
	int fd = timerhub_queue_fd(rig.queue);

	timerhub_queue_close(rig.queue);
	expect_eq(ring_take(&ring), 0);
	rig.queue = queue_open(rig.hub);
	expect_eq(timerhub_queue_fd(rig.queue), fd);
	arm_and_expire(&rig, &now_ns, 1);
	expect_eq(ring_take(&ring), 0);
	ring_cancel(&ring);
	ring_poll(&ring, rig.queue);
	expect_eq(ring_take(&ring), 1);
	rig_close_polled(&rig, &ring);
}

TEST_LOOP(poll_of_no_queue_is_refused, 30, COUNT_OF(kinds))
{
	struct rig rig = rig_manual(4);
	struct io_uring ring;

	ring_open(&ring, _i);
	timerhub_uring_prep(ring_request(&ring, ON_QUEUE), rig.queue);
	timerhub_queue_close(rig.queue);
	expect_eq(io_uring_submit(&ring), 1);
	ring_ends(&ring, -EBADF);
	ring_poll(&ring, NULL);
	ring_ends(&ring, -EBADF);
	rig_close_polled(&rig, &ring);
}
