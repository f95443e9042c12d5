/* SPDX-License-Identifier: MIT */
/*
 * See announcer.h. The owner and consumers post; the thread that attaches opens, the one that
 * detaches closes.
 *
 * A message is sent from a ring of our own, whose only submission entry never changes. So posting
 * is to advance the ring's tail and to enter the kernel. If a thread is stopped in between, the
 * next thread submits its entry, and the stopped thread submits that thread's entry later. A
 * descriptor of our own holds the caller's ring: if the caller closes the ring's descriptor, and
 * the number goes to another file, that file gets no messages. Tested by
 * tests/service/test_attach.c.
 */
#define _GNU_SOURCE
#include "announcer.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How often to try when the kernel is short of something. */
#define ANNOUNCER_TRIES 3

struct announcer {
	struct io_uring ring;     /* ours: messages are sent from it */
	struct io_uring_sqe *sqe; /* its only entry */
	int ring_fd;              /* the caller's ring, as the caller names it */
	int target_fd;            /* the same, our own descriptor */
};

/* ---- open, close ---- */

/* Returns 0 if it is an io_uring, also one that answers only the thread which created it. */
static int ring_check(int fd)
{
	struct io_uring_probe probe = { .ops_len = 0 };
	int result = io_uring_register((unsigned)fd, IORING_REGISTER_PROBE, &probe, 0);

	if (result == -EOPNOTSUPP)
		return -EINVAL;
	return result == -EBADF || result == -EPERM || result == -ENOSYS ? result : 0;
}

static int ring_can_post(struct io_uring *ring)
{
	struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
	bool can = probe && io_uring_opcode_supported(probe, IORING_OP_MSG_RING);

	io_uring_free_probe(probe);
	return can ? 0 : -EOPNOTSUPP;
}

static int announcer_open_ring(struct announcer *announcer, uint64_t user_data)
{
	int result = io_uring_queue_init(1, &announcer->ring, 0);

	if (result < 0)
		return result;
	result = ring_can_post(&announcer->ring);
	if (result < 0) {
		io_uring_queue_exit(&announcer->ring);
		return result;
	}
	announcer->sqe = io_uring_get_sqe(&announcer->ring);
	io_uring_prep_msg_ring(announcer->sqe, announcer->target_fd, 0, user_data, 0);
	/* Our own completions are not read. */
	announcer->sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
	return 0;
}

int announcer_open(struct announcer **ret_announcer, int ring_fd, uint64_t user_data)
{
	struct announcer *announcer = calloc(1, sizeof(*announcer));
	int result = -ENOMEM;

	if (!announcer)
		return result;
	announcer->ring_fd = ring_fd;
	announcer->target_fd = fcntl(ring_fd, F_DUPFD_CLOEXEC, 0);
	result = announcer->target_fd < 0 ? -errno : ring_check(announcer->target_fd);
	if (result == 0)
		result = announcer_open_ring(announcer, user_data);
	if (result == 0) {
		*ret_announcer = announcer;
		return 0;
	}
	if (announcer->target_fd >= 0)
		(void)close(announcer->target_fd);
	free(announcer);
	return result;
}

void announcer_close(struct announcer *announcer)
{
	if (!announcer)
		return;
	io_uring_queue_exit(&announcer->ring);
	(void)close(announcer->target_fd);
	free(announcer);
}

/* ---- post ---- */

/*
 * Returns whether the caller has closed the ring. Our descriptor keeps the ring alive, but its
 * completions are no longer read, and would pile up. Returns false if the kernel cannot tell.
 */
static bool announcer_is_orphan(const struct announcer *announcer)
{
	long pid = syscall(SYS_getpid);
	long differ =
		syscall(SYS_kcmp, pid, pid, KCMP_FILE, announcer->ring_fd, announcer->target_fd);

	return differ > 0 || (differ < 0 && errno == EBADF);
}

static void announcer_enter(struct announcer *announcer)
{
	struct io_uring *ring = &announcer->ring;
	int result = -EAGAIN;

	/* Without waiting for anything; but what failed before is brought to the completions. */
	for (unsigned tries = 0; result < 0 && tries < ANNOUNCER_TRIES; tries++)
		result =
			io_uring_enter((unsigned)ring->ring_fd, 1, 0, IORING_ENTER_GETEVENTS, NULL);
	/*
	 * Only failures are there, and the eventfd has said the same to the consumers. Relaxed: no
	 * entry is read, and an older head only makes room later.
	 */
	u32_store_relaxed((atomic_u32 *)ring->cq.khead,
	                  u32_load_relaxed((atomic_u32 *)ring->cq.ktail));
}

void announcer_post(struct announcer *announcer, unsigned count)
{
	int saved_errno = errno;

	if (!announcer_is_orphan(announcer)) {
		/* Relaxed: a hint. */
		u32_store_relaxed((atomic_u32 *)&announcer->sqe->len,
		                  count < INT_MAX ? count : INT_MAX);
		/* Relaxed: the kernel reads it in this thread's call, and so the entry. */
		(void)u32_fetch_add_relaxed((atomic_u32 *)announcer->ring.sq.ktail, 1);
		announcer_enter(announcer);
	}
	errno = saved_errno;
}
