/* SPDX-License-Identifier: MIT */
/*
 * Waits in io_uring; only the owner's thread starts it and sleeps, another may open and close it.
 * The ring holds a multishot poll of the bell, and of the timerfd if there is one. The wait has a
 * timeout argument, so there is no request to cancel; it is relative, since absolute ones are wrong
 * in time namespaces. The ring is created, with its errors, at the open, and disabled until the
 * owner's thread enables it.
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

#include "base/bell.h"
#include "owner/sleeper.h"

/* newer than the headers with which the library is built */
#define URING_FEAT_NO_IOWAIT (1u << 17)
#define URING_ENTER_NO_IOWAIT (1u << 7)

#define URING_ENTRIES 8
/* some sandboxes return EINTR for every submission */
#define URING_SUBMIT_TRIES 16

struct uring_poll {
	int fd;        /* -1: none */
	bool prepared; /* written, not submitted */
	bool polling;  /* in the ring */
};

/* poll's index is the user data of its completions */
enum { URING_BELL, URING_DEADLINE_FD, URING_POLLS };

struct sleeper_uring {
	struct io_uring ring;
	struct uring_poll polls[URING_POLLS];
	unsigned enter_flags;
};

/*
 * EXT_ARG (Linux 5.11): a timeout of the wait. CQE_SKIP (5.17): multishot poll, and timeouts finer
 * than a jiffy.
 */
static bool uring_good_enough(const struct io_uring *ring)
{
	return (ring->features & IORING_FEAT_EXT_ARG) != 0 &&
	       (ring->features & IORING_FEAT_CQE_SKIP) != 0;
}

/*
 * Creates a ring whose descriptor is not 0, 1 or 2 (base/descriptor.h). It is moved, because nobody
 * can write to a ring's descriptor.
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

/* The best that this kernel has. */
static int uring_create(struct io_uring *ring)
{
	static const unsigned kinds[] = {
		IORING_SETUP_R_DISABLED | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
		IORING_SETUP_R_DISABLED | IORING_SETUP_COOP_TASKRUN,
		IORING_SETUP_R_DISABLED,
	};
	int result = -EINVAL;

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && result == -EINVAL; i++)
		result = uring_init(ring, kinds[i]);
	if (result == 0 && !uring_good_enough(ring)) {
		io_uring_queue_exit(ring);
		result = -ENOSYS;
	}
	return result;
}

static int uring_submit(struct sleeper_uring *uring)
{
	int result = -EINTR;

	for (unsigned i = 0; i < URING_SUBMIT_TRIES && result == -EINTR; i++)
		result = io_uring_submit(&uring->ring);
	return result;
}

/* Unless it is already polled. */
static int uring_poll_fd(struct sleeper_uring *uring, unsigned index)
{
	struct uring_poll *poll = &uring->polls[index];
	int result;

	if (poll->fd < 0 || poll->polling)
		return 0;
	if (!poll->prepared) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);

		if (!sqe)
			return -EBUSY;
		io_uring_prep_poll_multishot(sqe, poll->fd, POLLIN);
		io_uring_sqe_set_data64(sqe, index);
		poll->prepared = true;
	}
	result = uring_submit(uring);
	if (result < 1)
		return result < 0 ? result : -EAGAIN;
	poll->prepared = false;
	poll->polling = true;
	return 0;
}

static int uring_poll_fds(struct sleeper_uring *uring)
{
	int result = 0;

	for (unsigned i = 0; i < URING_POLLS && result == 0; i++)
		result = uring_poll_fd(uring, i);
	return result;
}

static int uring_start(struct sleeper *sleeper)
{
	struct sleeper_uring *uring = sleeper->state;
	/* io_uring_enable_rings() is declared, but not exported, by liburing 2.3. */
	int result = io_uring_register((unsigned)uring->ring.ring_fd, IORING_REGISTER_ENABLE_RINGS,
	                               NULL, 0);

	return result < 0 ? result : uring_poll_fds(uring);
}

/* An fd became readable, or its poll ended. */
static int uring_reap(struct sleeper_uring *uring)
{
	struct io_uring_cqe *cqe;
	unsigned head, count = 0;
	int result = 0;

	io_uring_for_each_cqe (&uring->ring, head, cqe) {
		if ((cqe->flags & IORING_CQE_F_MORE) == 0)
			uring->polls[cqe->user_data % URING_POLLS].polling = false;
		if (cqe->res < 0)
			result = cqe->res;
		count++;
	}
	io_uring_cq_advance(&uring->ring, count);
	return result;
}

/* EINTR is a success, unless there are too many in a row. */
static int uring_wait(struct sleeper *sleeper, const struct io_uring_getevents_arg *arg)
{
	struct sleeper_uring *uring = sleeper->state;
	int result = io_uring_enter2((unsigned)uring->ring.ring_fd, 0, 1, uring->enter_flags,
	                             (sigset_t *)(void *)arg, sizeof(*arg));

	if (result == -EINTR && ++sleeper->interruptions < SLEEPER_INTERRUPTIONS_MAX)
		return 0;
	sleeper->interruptions = 0;
	return result == -ETIME || result > 0 ? 0 : result;
}

/* Model of the bell: tests/models/promise.pml. */
static int uring_sleep(struct sleeper *sleeper, uint64_t timeout_ns)
{
	struct sleeper_uring *uring = sleeper->state;
	struct __kernel_timespec timeout = {
		.tv_sec = (int64_t)(timeout_ns / 1000000000u),
		.tv_nsec = (long long)(timeout_ns % 1000000000u),
	};
	struct io_uring_getevents_arg arg = {
		.ts = timeout_ns == UINT64_MAX ? 0 : (uint64_t)(uintptr_t)&timeout,
	};
	int result = uring_poll_fds(uring);

	if (result < 0)
		return result;
	result = uring_wait(sleeper, &arg);
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
	uring->enter_flags = IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG;
	if ((uring->ring.features & URING_FEAT_NO_IOWAIT) != 0)
		uring->enter_flags |= URING_ENTER_NO_IOWAIT;
	uring->polls[URING_BELL].fd = bell;
	uring->polls[URING_DEADLINE_FD].fd = deadline_fd;
	*sleeper = (struct sleeper){
		.ops = &sleeper_uring_ops, .bell = bell, .deadline_fd = deadline_fd, .state = uring
	};
	return 0;
}
