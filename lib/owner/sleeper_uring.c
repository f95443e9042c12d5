/* SPDX-License-Identifier: MIT */
/*
 * Sleeps in io_uring. The ring holds a multishot poll of the bell (the eventfd with which callers
 * wake the owner), and of the timerfd if there is one. Such a poll completes each time the bell
 * rings, so nobody needs to read the bell to clear it.
 *
 * The owner's thread creates the ring, because when a ring is torn down, the kernel lets a call of
 * the thread that has created it fail with EINTR.
 *
 * A sleep is one system call that has the timeout as its argument, so there is no request to cancel
 * afterwards. But before Linux 6.15 a thread that waits there counts as one that waits for a disk,
 * and an idle hub would show as 100 % iowait of a CPU. On such a kernel the timeout is a request in
 * the ring as well, and the owner blocks in ppoll(2) on the ring. If a seccomp filter or an
 * RLIMIT_NOFILE of 0 forbids ppoll(2), it blocks in io_uring_enter(2) all the same. Timeouts are
 * relative, because the kernel gets absolute ones wrong in a time namespace.
 *
 * A ring must have two features. With EXT_ARG (Linux 5.11) a wait can have a timeout. A kernel with
 * CQE_SKIP (5.17) also has the multishot poll, and timeouts that are finer than a jiffy. If the
 * owner blocks in ppoll(2), the ring must not have DEFER_TASKRUN, because such a ring shows
 * completions only after another system call.
 *
 * uring_init() moves a ring whose descriptor is 0, 1 or 2 to a higher one. If a thread prints to
 * the low descriptor before that, it only gets an error, because a ring refuses write(2).
 *
 * uring_submit() leaves in the ring what it could not submit. That never fills the ring, because
 * the owner closes the ring after a few failures in a row.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "owner/sleeper.h"

/* These constants are newer than the kernel headers with which the library may be built. */
#define URING_FEAT_NO_IOWAIT (1u << 17)
#define URING_ENTER_NO_IOWAIT (1u << 7)

#define URING_ENTRIES 8
/*
 * 146 years, longer than the owner ever sleeps. The kernel adds its clock to this, and the sum must
 * not overflow.
 */
#define URING_NEVER_NS (((uint64_t)1 << 62) + 1)
/* How often a submission is tried, because some sandboxes answer it with EINTR. */
#define URING_SUBMIT_TRIES 16

/*
 * The user_data of the requests, by which their completions are told apart. The first two are also
 * indexes of `fds`.
 */
enum { URING_BELL, URING_DEADLINE_FD, URING_FDS, URING_TIMEOUT = URING_FDS, URING_UPDATE };

/* A descriptor that the ring polls: the eventfd by which callers wake the owner, or the timerfd. */
struct uring_fd {
	int fd;         /* the descriptor, or -1 if there is none */
	bool requested; /* whether a poll was written into the ring that has not ended yet */
};

struct sleeper_uring {
	struct io_uring ring;
	struct uring_fd fds[URING_FDS];   /* the bell and the timerfd */
	bool blocks_in_ppoll;             /* whether a sleep blocks in ppoll(2) on the ring */
	bool timeout_requested;           /* whether a timeout is in the ring that has not ended */
	struct __kernel_timespec timeout; /* the kernel reads it when the request is submitted */
};

static bool uring_counts_no_iowait(const struct io_uring *ring)
{
	return (ring->features & URING_FEAT_NO_IOWAIT) != 0;
}

/*
 * Tells whether the owner can sleep in this ring. `kind` holds the flags with which the ring was
 * created.
 */
static bool uring_good_enough(const struct io_uring *ring, unsigned kind)
{
	/*
	 * EXT_ARG: a wait can have a timeout. CQE_SKIP: the kernel is new enough for the other
	 * requests. DEFER_TASKRUN would hide completions from ppoll(2).
	 */
	return (ring->features & IORING_FEAT_EXT_ARG) != 0 &&
	       (ring->features & IORING_FEAT_CQE_SKIP) != 0 &&
	       (uring_counts_no_iowait(ring) || (kind & IORING_SETUP_DEFER_TASKRUN) == 0);
}

/*
 * Creates a ring, and makes sure that its descriptor is not 0, 1 or 2, to which the program may
 * print (base/descriptor.h). Returns 0 or a negative errno.
 */
static int uring_init(struct io_uring *ring, unsigned flags)
{
	int result = io_uring_queue_init(URING_ENTRIES, ring, flags), low = ring->ring_fd;

	if (result < 0 || low > STDERR_FILENO)
		return result;
	ring->ring_fd = fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	ring->enter_ring_fd = ring->ring_fd;
	result = ring->ring_fd < 0 ? -EMFILE : 0;
	(void)close(low);
	if (result < 0)
		io_uring_queue_exit(ring);
	return result;
}

/* Creates the best kind of ring that this kernel offers. Returns 0 or a negative errno. */
static int uring_create(struct io_uring *ring)
{
	static const unsigned kinds[] = {
		IORING_SETUP_R_DISABLED | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
		IORING_SETUP_R_DISABLED | IORING_SETUP_COOP_TASKRUN,
		IORING_SETUP_R_DISABLED,
	};
	int result = -EINVAL;

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		result = uring_init(ring, kinds[i]);
		if (result == 0 && uring_good_enough(ring, kinds[i]))
			return 0;
		if (result == 0) {
			io_uring_queue_exit(ring);
			result = -ENOSYS;
		} else if (result != -EINVAL) {
			return result;
		}
	}
	return result;
}

/* Submits the requests in the ring. Returns 0 or a negative errno. */
static int uring_submit(struct sleeper_uring *uring)
{
	int result = -EINTR;

	if (io_uring_sq_ready(&uring->ring) == 0)
		return 0;
	for (unsigned i = 0; i < URING_SUBMIT_TRIES && result == -EINTR; i++)
		result = io_uring_submit(&uring->ring);
	if (result >= 0 && io_uring_sq_ready(&uring->ring) > 0)
		result = -EAGAIN;
	return result < 0 ? result : 0;
}

/*
 * Requests a poll of one descriptor, unless the ring has one already. Returns 0, or -EBUSY if the
 * ring is full. The request still has to be submitted.
 */
static int uring_poll_fd(struct sleeper_uring *uring, unsigned index)
{
	struct uring_fd *polled = &uring->fds[index];
	struct io_uring_sqe *sqe;

	if (polled->fd < 0 || polled->requested)
		return 0;
	sqe = io_uring_get_sqe(&uring->ring);
	if (!sqe)
		return -EBUSY;
	io_uring_prep_poll_multishot(sqe, polled->fd, POLLIN);
	io_uring_sqe_set_data64(sqe, index);
	polled->requested = true;
	return 0;
}

static int uring_poll_fds(struct sleeper_uring *uring)
{
	int result = 0;

	for (unsigned i = 0; i < URING_FDS && result == 0; i++)
		result = uring_poll_fd(uring, i);
	return result;
}

static int uring_start(struct sleeper *sleeper)
{
	struct sleeper_uring *uring = sleeper->state;
	/*
	 * liburing 2.3 declares io_uring_enable_rings(), but does not export it, so the ring is
	 * enabled by hand.
	 */
	int result = io_uring_register((unsigned)uring->ring.ring_fd, IORING_REGISTER_ENABLE_RINGS,
	                               NULL, 0);

	if (result >= 0)
		result = uring_poll_fds(uring);
	return result < 0 ? result : uring_submit(uring);
}

/*
 * Handles a completion. If its request will not complete again, the request is marked as ended.
 * Returns 0, or the negative errno with which the request has failed.
 */
static int uring_complete(struct sleeper_uring *uring, const struct io_uring_cqe *cqe)
{
	bool ended = (cqe->flags & IORING_CQE_F_MORE) == 0;

	switch (cqe->user_data) {
	case URING_TIMEOUT:
		uring->timeout_requested = false;
		return 0;
	case URING_UPDATE: /* too late: the timeout had passed, and completes by itself */
		return 0;
	default:
		if (ended)
			uring->fds[cqe->user_data % URING_FDS].requested = false;
		return cqe->res < 0 ? cqe->res : 0;
	}
}

/*
 * Takes all completions out of the ring. If one of them has failed, its negative errno is returned,
 * otherwise 0.
 */
static int uring_reap(struct sleeper_uring *uring)
{
	struct io_uring_cqe *cqe;
	unsigned head, count = 0;
	int result = 0, one;

	io_uring_for_each_cqe (&uring->ring, head, cqe) {
		one = uring_complete(uring, cqe);
		if (one < 0)
			result = one;
		count++;
	}
	io_uring_cq_advance(&uring->ring, count);
	if (result < 0 || !io_uring_cq_has_overflow(&uring->ring))
		return result;
	/*
	 * Some completions did not fit into the ring. Let the kernel move them into it now, because
	 * otherwise ppoll(2) on the ring would always return at once.
	 */
	result = io_uring_get_events(&uring->ring);
	return result < 0 ? result : 0;
}

static struct __kernel_timespec uring_timespec(uint64_t ns)
{
	return (struct __kernel_timespec){ .tv_sec = (int64_t)(ns / NS_PER_S),
		                           .tv_nsec = (long long)(ns % NS_PER_S) };
}

/*
 * Requests a timeout for a sleep in ppoll(2). If an older request is still in the ring, changes its
 * time, because it would wake the owner in vain at the old time. Returns 0, or -EBUSY if the ring
 * is full.
 */
static int uring_set_timeout(struct sleeper_uring *uring, uint64_t timeout_ns)
{
	struct io_uring_sqe *sqe;

	if (timeout_ns == UINT64_MAX && !uring->timeout_requested)
		return 0;
	sqe = io_uring_get_sqe(&uring->ring);
	if (!sqe)
		return -EBUSY;
	uring->timeout = uring_timespec(u64_min(timeout_ns, URING_NEVER_NS));
	if (uring->timeout_requested) {
		io_uring_prep_timeout_update(sqe, &uring->timeout, URING_TIMEOUT, 0);
		sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
		io_uring_sqe_set_data64(sqe, URING_UPDATE);
	} else {
		io_uring_prep_timeout(sqe, &uring->timeout, 0, 0);
		io_uring_sqe_set_data64(sqe, URING_TIMEOUT);
	}
	uring->timeout_requested = true;
	return 0;
}

/*
 * Blocks in ppoll(2) until the ring has a completion. Returns 0, or -EINTR if the call has ended
 * without one.
 */
static int uring_ppoll(struct sleeper_uring *uring)
{
	struct pollfd fd = { .fd = uring->ring.ring_fd, .events = POLLIN };

	if (ppoll(&fd, 1, NULL, NULL) >= 0)
		return 0;
	/*
	 * After EINTR, which is normally from a signal, ppoll(2) can be used again. Any other error
	 * says that a filter or RLIMIT_NOFILE forbids it.
	 */
	uring->blocks_in_ppoll = errno == EINTR;
	return -EINTR;
}

/* Waits in io_uring until the ring has a completion or `timeout_ns` have passed. */
static int uring_enter(struct sleeper_uring *uring, uint64_t timeout_ns)
{
	struct __kernel_timespec timeout = uring_timespec(timeout_ns);
	struct io_uring_getevents_arg arg = {
		.ts = timeout_ns == UINT64_MAX ? 0 : (uint64_t)(uintptr_t)&timeout,
	};
	unsigned flags = IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG;
	int result;

	if (uring_counts_no_iowait(&uring->ring))
		flags |= URING_ENTER_NO_IOWAIT;
	result = io_uring_enter2((unsigned)uring->ring.ring_fd, 0, 1, flags,
	                         (sigset_t *)(void *)&arg, sizeof(arg));
	return result == -ETIME || result > 0 ? 0 : result;
}

/*
 * Implements sleeper_ops.sleep: waits until the ring has a completion, in io_uring_enter(2) or in
 * ppoll(2).
 */
static int uring_sleep(struct sleeper *sleeper, uint64_t timeout_ns)
{
	struct sleeper_uring *uring = sleeper->state;
	int result = uring_poll_fds(uring);

	if (result == 0 && uring->blocks_in_ppoll)
		result = uring_set_timeout(uring, timeout_ns);
	if (result == 0)
		result = uring_submit(uring);
	if (result < 0)
		return result;
	result = uring->blocks_in_ppoll ? uring_ppoll(uring) : uring_enter(uring, timeout_ns);
	/*
	 * sleep() is allowed to return too early, so an interruption is not an error. Many
	 * interruptions in a row are an error, because the owner would keep a CPU busy.
	 */
	if (result == -EINTR && ++sleeper->interruptions < SLEEPER_INTERRUPTIONS_MAX)
		return uring_reap(uring);
	sleeper->interruptions = 0;
	return result < 0 ? result : uring_reap(uring);
}

static void uring_close(struct sleeper *sleeper)
{
	struct sleeper_uring *uring = sleeper->state;

	io_uring_queue_exit(&uring->ring);
	free(uring);
	sleeper->state = NULL;
}

static const struct sleeper_ops sleeper_uring_ops = {
	.start = uring_start,
	.sleep = uring_sleep,
	.close = uring_close,
};

int sleeper_open_uring(struct sleeper *sleeper, int bell, int deadline_fd)
{
	struct sleeper_uring *uring = calloc(1, sizeof(*uring));
	int result;

	if (!uring)
		return -ENOMEM;
	result = uring_create(&uring->ring);
	if (result < 0) {
		free(uring);
		return result;
	}
	uring->blocks_in_ppoll = !uring_counts_no_iowait(&uring->ring);
	uring->fds[URING_BELL].fd = bell;
	uring->fds[URING_DEADLINE_FD].fd = deadline_fd;
	*sleeper = (struct sleeper){
		.ops = &sleeper_uring_ops, .bell = bell, .deadline_fd = deadline_fd, .state = uring
	};
	return 0;
}
