/* SPDX-License-Identifier: MIT */
/*
 * One io_uring with two polls and the wait for completions: replaces what the library calls of
 * liburing; the inline functions use the queues set up here.
 */
#include <errno.h>
#include <liburing.h>
#include <limits.h>
#include <poll.h>
#include <string.h>

#include "kernel.h"
#include "report.h"

#define RING_FD 2000
#define SQES 8
#define CQES 16
#define POLLS 2

static struct {
	bool open, enabled;
	unsigned sq_head, sq_tail, sq_flags;
	unsigned cq_head;
	uint32_t cq_tail;
	struct io_uring_sqe sqes[SQES];
	struct io_uring_cqe cqes[CQES];
	int polled_fds[POLLS]; /* polled descriptor of each user data, or -1 */
	/* carried by the ring's lock */
	struct memory_view view;
} ring;

int __wrap_io_uring_queue_init(unsigned entries, struct io_uring *ret_ring, unsigned flags);
void __wrap_io_uring_queue_exit(struct io_uring *theirs);
int __wrap_io_uring_submit(struct io_uring *theirs);
int __wrap_io_uring_register(unsigned fd, unsigned opcode, const void *argument, unsigned count);
int __wrap_io_uring_enter2(unsigned fd, unsigned to_submit, unsigned min_complete, unsigned flags,
                           sigset_t *argument, size_t bytes);

void ring_begin(void)
{
	memset(&ring, 0, sizeof(ring));
	for (unsigned i = 0; i < POLLS; i++)
		ring.polled_fds[i] = -1;
}

/* Or 0. */
static int ring_error(void)
{
	static const int errors[] = { EAGAIN, EBUSY, ENOMEM, EPERM, EINTR };

	if (kernel.refuse_one_in == 0 || !dice_one_in(&kernel.dice, kernel.refuse_one_in))
		return 0;
	return -errors[dice_below(&kernel.dice, sizeof(errors) / sizeof(errors[0]))];
}

int __wrap_io_uring_queue_init(unsigned entries, struct io_uring *ret_ring, unsigned flags)
{
	scheduler_step();
	if (entries != SQES || (flags & IORING_SETUP_R_DISABLED) == 0)
		report_failure("this kind of ring is not simulated");
	if (kernel.ring_refused)
		return -EPERM;
	if (kernel_refuses())
		return -ENOMEM;
	if ((flags & IORING_SETUP_DEFER_TASKRUN) != 0 && dice_one_in(&kernel.dice, 4))
		return -EINVAL; /* a kernel older than 6.1 refuses this flag */
	if (ring.open)
		report_failure("there is a ring already");
	ring_begin();
	ring.open = true;
	kernel.rings++;
	memset(ret_ring, 0, sizeof(*ret_ring));
	ret_ring->ring_fd = RING_FD;
	ret_ring->features = IORING_FEAT_EXT_ARG | IORING_FEAT_CQE_SKIP;
	ret_ring->sq.khead = &ring.sq_head;
	ret_ring->sq.ktail = &ring.sq_tail;
	ret_ring->sq.kflags = &ring.sq_flags;
	ret_ring->sq.sqes = ring.sqes;
	ret_ring->sq.ring_mask = SQES - 1;
	ret_ring->sq.ring_entries = SQES;
	ret_ring->cq.khead = &ring.cq_head;
	ret_ring->cq.ktail = &ring.cq_tail;
	ret_ring->cq.cqes = ring.cqes;
	ret_ring->cq.ring_mask = CQES - 1;
	ret_ring->cq.ring_entries = CQES;
	return 0;
}

void __wrap_io_uring_queue_exit(struct io_uring *theirs)
{
	scheduler_step();
	(void)theirs;
	if (!ring.open)
		report_failure("a ring was closed twice");
	ring_begin();
	kernel.rings--;
}

int __wrap_io_uring_register(unsigned fd, unsigned opcode, const void *argument, unsigned count)
{
	int error;

	(void)argument;
	(void)count;
	scheduler_step();
	if (opcode == IORING_REGISTER_PROBE)
		return 0;
	error = ring_error();
	if (fd != RING_FD || opcode != IORING_REGISTER_ENABLE_RINGS)
		report_failure("this registration is not simulated");
	ring.enabled = error == 0;
	return error;
}

/* The poll ends with it by chance, or if the queue is almost full. */
static void ring_post(unsigned poll)
{
	struct io_uring_cqe *cqe = &ring.cqes[ring.cq_tail & (CQES - 1)];
	bool last = ring.cq_tail - ring.cq_head >= CQES - POLLS || kernel_interrupts();

	if (ring.cq_tail - ring.cq_head == CQES)
		report_failure("a poll that had ended has posted");
	*cqe = (struct io_uring_cqe){ .user_data = poll,
		                      .res = POLLIN,
		                      .flags = last ? 0 : IORING_CQE_F_MORE };
	memory_tell(&ring.cq_tail, ring.cq_tail + 1);
	if (last)
		ring.polled_fds[poll] = -1;
	report_tell("  completion of poll %u%s", poll, last ? ", its last" : "");
	memory_publish(&ring.view);
	scheduler_wake(&ring, UINT_MAX);
}

void ring_notice(int fd)
{
	for (unsigned i = 0; i < POLLS; i++)
		if (fd == ring.polled_fds[i])
			ring_post(i);
}

int __wrap_io_uring_submit(struct io_uring *theirs)
{
	const struct io_uring_sqe *sqe;
	int error;

	scheduler_step();
	error = ring_error();
	if (error < 0)
		return error;
	if (!ring.enabled || theirs->sq.sqe_tail - theirs->sq.sqe_head != 1)
		report_failure("a submission that is not simulated");
	sqe = &theirs->sq.sqes[theirs->sq.sqe_head & (SQES - 1)];
	theirs->sq.sqe_head++;
	ring.sq_tail = ring.sq_head = theirs->sq.sqe_head;
	if (sqe->opcode != IORING_OP_POLL_ADD || (sqe->len & IORING_POLL_ADD_MULTI) == 0 ||
	    sqe->user_data >= POLLS)
		report_failure("a request that is not simulated");
	if (ring.polled_fds[sqe->user_data] != -1)
		report_failure("descriptor %d is polled twice", sqe->fd);
	ring.polled_fds[sqe->user_data] = sqe->fd;
	if (!timerfd_is(sqe->fd))
		memory_lock(&kernel_bell(sqe->fd)->view);
	if (kernel_readable(sqe->fd))
		ring_post((unsigned)sqe->user_data);
	return 1;
}

int __wrap_io_uring_enter2(unsigned fd, unsigned to_submit, unsigned min_complete, unsigned flags,
                           sigset_t *argument, size_t bytes)
{
	const struct io_uring_getevents_arg *arg = (void *)argument;
	const struct __kernel_timespec *timeout = (const void *)(uintptr_t)arg->ts;
	uint64_t timeout_ns = UINT64_MAX, begin_ns;
	int error;

	scheduler_step();
	if (fd != RING_FD || !ring.enabled || to_submit != 0 || min_complete != 1 ||
	    bytes != sizeof(*arg) || (flags & IORING_ENTER_EXT_ARG) == 0)
		report_failure("this kind of wait is not simulated");
	if (timeout)
		timeout_ns = (uint64_t)timeout->tv_sec * 1000000000u + (uint64_t)timeout->tv_nsec;
	error = ring_error();
	if (error < 0)
		return error;
	timerfd_look(TIMERFD_FD);
	memory_lock(&ring.view);
	if (ring.cq_tail != ring.cq_head)
		return 0;
	if (kernel_interrupts())
		return -EINTR;
	begin_ns = scheduler.now_ns;
	if (timeout_ns > 0)
		kernel_owner_sleeps(&ring, timeout_ns);
	memory_lock(&ring.view);
	if (ring.cq_tail != ring.cq_head)
		return 0;
	return scheduler.now_ns - begin_ns >= timeout_ns ? -ETIME : -EINTR;
}
