/* SPDX-License-Identifier: MIT */
/*
 * A simulated io_uring. It has two polls, a timeout, and the wait for completions, or for the ring
 * to become readable. It replaces the functions of liburing that the library calls. liburing's
 * inline functions are the real ones, and use the queues that are set up here.
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
#define CQES 2      /* a kernel makes 16, which overflow too seldom */
#define KEPT_MAX 32 /* completions for which the queue had no room */
#define POLLS 2
#define TIMEOUT POLLS                      /* user data */
#define NEVER_NS ((UINT64_C(1) << 62) + 1) /* by which the library says that it wants no timeout */
#define FEAT_NO_IOWAIT (1u << 17)
#define ENTER_NO_IOWAIT (1u << 7)

static struct {
	bool open, enabled;
	unsigned sq_head, sq_tail;
	unsigned cq_head;
	uint32_t cq_tail, sq_flags;
	struct io_uring_sqe sqes[SQES];
	struct io_uring_cqe cqes[CQES];
	struct io_uring_cqe kept[KEPT_MAX];
	unsigned kept_count;
	int polled_fds[POLLS]; /* polled descriptor of each user data, or -1 */
	bool has_timeout;
	uint64_t timeout_at_ns; /* when it completes; UINT64_MAX: never */
	bool ppoll_denied;
	struct memory_view view; /* the vector clock that the ring's lock passes on */
} ring;

int __wrap_io_uring_queue_init(unsigned entries, struct io_uring *ret_ring, unsigned flags);
void __wrap_io_uring_queue_exit(struct io_uring *theirs);
int __wrap_io_uring_submit(struct io_uring *theirs);
int __wrap_io_uring_get_events(struct io_uring *theirs);
int __wrap_io_uring_register(unsigned fd, unsigned opcode, const void *argument, unsigned count);
int __wrap_io_uring_enter2(unsigned fd, unsigned to_submit, unsigned min_complete, unsigned flags,
                           sigset_t *argument, size_t bytes);

void ring_begin(void)
{
	memset(&ring, 0, sizeof(ring));
	for (unsigned i = 0; i < POLLS; i++)
		ring.polled_fds[i] = -1;
	ring.timeout_at_ns = UINT64_MAX;
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
	if (!kernel.ring_counts_iowait)
		ret_ring->features |= FEAT_NO_IOWAIT;
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

/* Returns true if the queue is full, or must first take the completions kept for lack of room. */
static bool ring_is_full(void)
{
	return ring.kept_count > 0 || ring.cq_tail - ring.cq_head == CQES;
}

static void ring_complete(struct io_uring_cqe completion)
{
	if (ring_is_full()) {
		if (ring.kept_count == KEPT_MAX)
			report_failure("the ring's completions are never asked for");
		ring.kept[ring.kept_count++] = completion;
		memory_tell(&ring.sq_flags, IORING_SQ_CQ_OVERFLOW);
	} else {
		ring.cqes[ring.cq_tail & (CQES - 1)] = completion;
		memory_tell(&ring.cq_tail, ring.cq_tail + 1);
	}
	memory_publish(&ring.view);
	scheduler_wake(&ring, UINT_MAX);
}

/* Moves the completions that were kept into the queue. */
static void ring_flush(void)
{
	unsigned count = ring.kept_count;

	ring.kept_count = 0;
	memory_tell(&ring.sq_flags, 0);
	for (unsigned i = 0; i < count; i++)
		ring_complete(ring.kept[i]);
}

/* Completes a poll. By chance, or if the queue is full, it is the poll's last completion. */
static void ring_post(unsigned poll)
{
	bool last = ring_is_full() || kernel_interrupts();

	if (last)
		ring.polled_fds[poll] = -1;
	report_tell("  completion of poll %u%s", poll, last ? ", its last" : "");
	ring_complete((struct io_uring_cqe){
		.user_data = poll, .res = POLLIN, .flags = last ? 0 : IORING_CQE_F_MORE });
}

void ring_notice(int fd)
{
	for (unsigned i = 0; i < POLLS; i++)
		if (fd == ring.polled_fds[i])
			ring_post(i);
}

/* Is there a completion? */
static bool ring_readable(void)
{
	timerfd_look();
	if (ring.has_timeout && ring.timeout_at_ns <= scheduler.now_ns) {
		ring.has_timeout = false;
		ring.timeout_at_ns = UINT64_MAX;
		ring_complete((struct io_uring_cqe){ .user_data = TIMEOUT, .res = -ETIME });
	}
	memory_lock(&ring.view);
	return ring.cq_tail != ring.cq_head || ring.kept_count > 0;
}

static void ring_submit_poll(const struct io_uring_sqe *sqe)
{
	if ((sqe->len & IORING_POLL_ADD_MULTI) == 0 || sqe->user_data >= POLLS)
		report_failure("this poll is not simulated");
	if (ring.polled_fds[sqe->user_data] != -1)
		report_failure("descriptor %d is polled twice", sqe->fd);
	ring.polled_fds[sqe->user_data] = sqe->fd;
	if (!timerfd_is(sqe->fd))
		memory_lock(&kernel_bell(sqe->fd)->view);
	if (kernel_readable(sqe->fd))
		ring_post((unsigned)sqe->user_data);
}

/* Sets or updates the timeout. An update posts a completion only if no timeout is set. */
static void ring_submit_timeout(const struct io_uring_sqe *sqe)
{
	bool updates = sqe->opcode == IORING_OP_TIMEOUT_REMOVE;
	const struct __kernel_timespec *timeout =
		(const void *)(uintptr_t)(updates ? sqe->off : sqe->addr);
	uint64_t ns = (uint64_t)timeout->tv_sec * 1000000000u + (uint64_t)timeout->tv_nsec;

	if (updates ? sqe->timeout_flags != IORING_TIMEOUT_UPDATE || sqe->addr != TIMEOUT ||
	                      (sqe->flags & IOSQE_CQE_SKIP_SUCCESS) == 0
	            : sqe->timeout_flags != 0 || sqe->off != 0 || sqe->user_data != TIMEOUT)
		report_failure("this timeout is not simulated");
	if (timeout->tv_nsec < 0 || timeout->tv_nsec > 999999999 || ns > NEVER_NS)
		report_failure("a timeout that the kernel would refuse, or wrap");
	(void)ring_readable();
	if (ring.has_timeout && !updates)
		report_failure("there is a timeout already");
	if (updates && !ring.has_timeout) {
		ring_complete((struct io_uring_cqe){ .user_data = sqe->user_data, .res = -ENOENT });
		return;
	}
	ring.has_timeout = true;
	ring.timeout_at_ns = ns == NEVER_NS ? UINT64_MAX : scheduler.now_ns + ns;
}

/* In order; after an error the rest stays for the next call. */
int __wrap_io_uring_submit(struct io_uring *theirs)
{
	int submitted = 0, error;

	scheduler_step();
	error = ring_error();
	if (error < 0)
		return error;
	if (!ring.enabled || theirs->sq.sqe_tail == theirs->sq.sqe_head)
		report_failure("a submission that is not simulated");
	do {
		const struct io_uring_sqe *sqe = &theirs->sq.sqes[theirs->sq.sqe_head & (SQES - 1)];

		theirs->sq.sqe_head++;
		ring.sq_tail = ring.sq_head = theirs->sq.sqe_head;
		if (sqe->opcode == IORING_OP_POLL_ADD)
			ring_submit_poll(sqe);
		else if (sqe->opcode == IORING_OP_TIMEOUT ||
		         sqe->opcode == IORING_OP_TIMEOUT_REMOVE)
			ring_submit_timeout(sqe);
		else
			report_failure("a request that is not simulated");
		submitted++;
	} while (theirs->sq.sqe_tail != theirs->sq.sqe_head && ring_error() == 0);
	return submitted;
}

int __wrap_io_uring_get_events(struct io_uring *theirs)
{
	int error;

	(void)theirs;
	scheduler_step();
	error = ring_error();
	if (error == 0)
		ring_flush();
	return error;
}

/* How long until the ring's timeout; UINT64_MAX: there is none. */
static uint64_t ring_timeout_ns(void)
{
	return ring.timeout_at_ns == UINT64_MAX ? UINT64_MAX
	                                        : ring.timeout_at_ns - scheduler.now_ns;
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
	if (kernel.ring_counts_iowait ? !ring.ppoll_denied : (flags & ENTER_NO_IOWAIT) == 0)
		report_failure("the owner rests, and counts as waiting for a disk");
	if (timeout)
		timeout_ns = (uint64_t)timeout->tv_sec * 1000000000u + (uint64_t)timeout->tv_nsec;
	error = ring_error();
	if (error < 0)
		return error;
	ring_flush();
	if (ring_readable())
		return 0;
	if (kernel_interrupts())
		return -EINTR;
	begin_ns = scheduler.now_ns;
	if (timeout_ns > 0)
		kernel_owner_sleeps(&ring, timeout_ns < ring_timeout_ns() ? timeout_ns
		                                                          : ring_timeout_ns());
	if (ring_readable())
		return 0;
	return scheduler.now_ns - begin_ns >= timeout_ns ? -ETIME : -EINTR;
}

int ring_ppoll(struct pollfd *fd)
{
	scheduler_step();
	if (fd->fd != RING_FD || !kernel.ring_counts_iowait)
		report_failure("this kind of poll is not simulated");
	if (kernel_denies()) {
		ring.ppoll_denied = true;
		errno = ENOMEM;
		return -1;
	}
	if (!ring_readable() && !kernel_interrupts())
		kernel_owner_sleeps(&ring, ring_timeout_ns());
	if (ring_readable())
		return 1;
	errno = EINTR;
	return -1;
}
