/* SPDX-License-Identifier: MIT */
/*
 * Measures io_uring, with one IORING_OP_TIMEOUT for each timer, as a program that gives each
 * request its timeout. IORING_TIMEOUT_UPDATE moves it and IORING_OP_TIMEOUT_REMOVE cancels it; both
 * post no completion. The requests of a turn are submitted together. A program has a ring for each
 * thread, so io_uring is not in the workloads with several threads.
 */
#include <errno.h>
#include <liburing.h>

#include "clocks.h"
#include "subject.h"

#define RING_ENTRIES 1024
#define RING_COMPLETIONS 65536
#define TIMERS_MAX 100000
#define DATA_NOBODY UINT32_MAX

static struct io_uring ring;
static struct __kernel_timespec *times;

static struct io_uring_sqe *uring_request(void)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	if (!sqe) {
		(void)io_uring_submit(&ring);
		sqe = io_uring_get_sqe(&ring);
	}
	if (!sqe)
		subject_fail("io_uring", EBUSY);
	return sqe;
}

static void uring_open(const struct subject_setup *setup)
{
	struct io_uring_params params = { .flags = IORING_SETUP_CQSIZE,
		                          .cq_entries = RING_COMPLETIONS };
	int result = io_uring_queue_init_params(RING_ENTRIES, &ring, &params);

	if (result < 0)
		subject_fail("io_uring", -result);
	times = subject_allocate((uint64_t)setup->timers + 1, sizeof(*times));
}

static void uring_set_time(uint32_t timer, uint64_t delay_ns)
{
	uint64_t deadline_ns = subject_cached_ns + delay_ns;

	times[timer].tv_sec = (long long)(deadline_ns / NS_PER_SECOND);
	times[timer].tv_nsec = (long long)(deadline_ns % NS_PER_SECOND);
}

static int uring_arm(uint32_t timer, uint64_t delay_ns)
{
	struct io_uring_sqe *sqe = uring_request();

	uring_set_time(timer, delay_ns);
	io_uring_prep_timeout(sqe, &times[timer], 0, IORING_TIMEOUT_ABS);
	io_uring_sqe_set_data64(sqe, timer);
	return 0;
}

static int uring_rearm(uint32_t timer, uint64_t delay_ns)
{
	struct io_uring_sqe *sqe = uring_request();

	uring_set_time(timer, delay_ns);
	io_uring_prep_timeout_update(sqe, &times[timer], timer, IORING_TIMEOUT_ABS);
	io_uring_sqe_set_data64(sqe, DATA_NOBODY);
	io_uring_sqe_set_flags(sqe, IOSQE_CQE_SKIP_SUCCESS);
	return 0;
}

static void uring_cancel(uint32_t timer)
{
	struct io_uring_sqe *sqe = uring_request();

	io_uring_prep_timeout_remove(sqe, timer, 0);
	io_uring_sqe_set_data64(sqe, DATA_NOBODY);
	io_uring_sqe_set_flags(sqe, IOSQE_CQE_SKIP_SUCCESS);
}

static void uring_reap(void)
{
	struct io_uring_cqe *cqe;

	while (io_uring_peek_cqe(&ring, &cqe) == 0) {
		uint32_t data = (uint32_t)io_uring_cqe_get_data64(cqe);
		int result = cqe->res;

		io_uring_cqe_seen(&ring, cqe);
		if (result == -ETIME && data != DATA_NOBODY)
			subject_expired(data);
	}
}

static void uring_tick(void)
{
	(void)io_uring_submit(&ring);
	subject_cache_now();
}

/* Submit the requests of a turn of the caller's loop, and read completions. */
static void uring_turn(void)
{
	uring_tick();
	uring_reap();
}

static void uring_run(bool (*done)(void))
{
	while (!done()) {
		(void)io_uring_submit_and_wait(&ring, 1);
		uring_reap();
	}
}

SUBJECT(uring, "io_uring", "one timeout request a timer, submitted a turn at a time",
        ALL_CALLS | CAN_PUSH_TAKE | CAN_BE_LATE,
        CALLS(uring_open, uring_turn, uring_arm, uring_rearm, uring_cancel, uring_run),
        .timers_max = TIMERS_MAX)
