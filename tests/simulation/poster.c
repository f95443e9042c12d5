/* SPDX-License-Identifier: MIT */
/*
 * The simulated kernel's other rings: the callers' own, one for each queue, of which only the
 * completions are counted that are posted there; and those from which the library posts.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdarg.h>
#include <string.h>

#include "kernel.h"
#include "report.h"

#define POSTERS_MAX 8
#define POSTER_FD 2100
#define DUPLICATES_MAX 8
#define DUPLICATE_FD 3100

static struct poster {
	bool open;
	bool failed; /* its last call was refused */
	unsigned sq_head, sq_tail, sq_flags, cq_head, cq_tail;
	struct io_uring_sqe sqe;
	struct memory_view view;
} posters[POSTERS_MAX];

static unsigned duplicates[DUPLICATES_MAX]; /* one beyond the caller's ring; 0: free */
struct caller_ring caller_rings[CALLER_RINGS];

int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, ...);
int __wrap_io_uring_enter(unsigned fd, unsigned to_submit, unsigned min_complete, unsigned flags,
                          sigset_t *mask);
struct io_uring_probe *__wrap_io_uring_get_probe_ring(struct io_uring *ring);
void __wrap_io_uring_free_probe(struct io_uring_probe *probe);

void posters_begin(void)
{
	memset(posters, 0, sizeof(posters));
	memset(duplicates, 0, sizeof(duplicates));
	memset(caller_rings, 0, sizeof(caller_rings));
}

static unsigned *duplicate_of(int fd)
{
	if (fd < DUPLICATE_FD || fd >= DUPLICATE_FD + DUPLICATES_MAX ||
	    duplicates[fd - DUPLICATE_FD] == 0)
		report_failure("ring %d is not open", fd);
	return &duplicates[fd - DUPLICATE_FD];
}

bool poster_close_duplicate(int fd)
{
	if (fd < DUPLICATE_FD)
		return false;
	*duplicate_of(fd) = 0;
	kernel.bells--;
	return true;
}

int __wrap_fcntl(int fd, int command, ...)
{
	scheduler_step();
	if (command != F_DUPFD_CLOEXEC || fd < CALLER_RING_FD ||
	    fd >= CALLER_RING_FD + CALLER_RINGS)
		report_failure("fcntl %d of %d is not simulated", command, fd);
	if (kernel_refuses()) {
		errno = EMFILE;
		return -1;
	}
	for (int i = 0; i < DUPLICATES_MAX; i++)
		if (duplicates[i] == 0) {
			duplicates[i] = 1 + (unsigned)(fd - CALLER_RING_FD);
			kernel.bells++;
			return DUPLICATE_FD + i;
		}
	report_failure("too many descriptors of rings");
}

/* The name where offsets have 64 bits by request. */
int __wrap_fcntl64(int fd, int command, ...)
{
	return __wrap_fcntl(fd, command);
}

int poster_open(struct io_uring *ret_ring)
{
	if (kernel_refuses())
		return -ENOMEM;
	for (int i = 0; i < POSTERS_MAX; i++) {
		struct poster *poster = &posters[i];

		if (poster->open)
			continue;
		*poster = (struct poster){ .open = true };
		memory_allocated(poster, sizeof(*poster));
		kernel.rings++;
		memset(ret_ring, 0, sizeof(*ret_ring));
		ret_ring->ring_fd = POSTER_FD + i;
		ret_ring->sq.khead = &poster->sq_head;
		ret_ring->sq.ktail = &poster->sq_tail;
		ret_ring->sq.kflags = &poster->sq_flags;
		ret_ring->sq.sqes = &poster->sqe;
		ret_ring->sq.ring_entries = 1;
		ret_ring->cq.khead = &poster->cq_head;
		ret_ring->cq.ktail = &poster->cq_tail;
		return 0;
	}
	report_failure("too many rings that post");
}

static struct poster *poster_of(int fd)
{
	if (fd < POSTER_FD || fd >= POSTER_FD + POSTERS_MAX || !posters[fd - POSTER_FD].open)
		report_failure("the ring %d that posts is not open", fd);
	return &posters[fd - POSTER_FD];
}

bool poster_close(int fd)
{
	struct poster *poster;

	if (fd < POSTER_FD || fd >= POSTER_FD + POSTERS_MAX)
		return false;
	poster = poster_of(fd);
	poster->open = false;
	kernel.rings--;
	memory_freed(poster, sizeof(*poster));
	return true;
}

static void poster_submit(struct poster *poster)
{
	const struct io_uring_sqe *sqe = &poster->sqe;
	unsigned target = *duplicate_of(sqe->fd) - 1;

	if (sqe->opcode != IORING_OP_MSG_RING || memory_newest(&sqe->len) == 0)
		report_failure("a message that is not simulated");
	if (caller_rings[target].detached)
		report_failure("a completion was posted to ring %u, which is detached", target);
	poster->sq_head++;
	caller_rings[target].posts++;
}

int __wrap_io_uring_enter(unsigned fd, unsigned to_submit, unsigned min_complete, unsigned flags,
                          sigset_t *mask)
{
	struct poster *poster;

	scheduler_step();
	poster = poster_of((int)fd);
	if (to_submit != 1 || min_complete != 0 || mask || flags != IORING_ENTER_GETEVENTS)
		report_failure("this kind of submission is not simulated");
	/* Not twice on end: the library gives up after some. */
	poster->failed = !poster->failed && kernel_interrupts();
	if (poster->failed)
		return -EAGAIN;
	memory_lock(&poster->view);
	if (memory_newest(&poster->sq_tail) != poster->sq_head)
		poster_submit(poster);
	return 1;
}

struct io_uring_probe *__wrap_io_uring_get_probe_ring(struct io_uring *ring)
{
	static union {
		struct io_uring_probe probe;
		char bytes[sizeof(struct io_uring_probe) +
		           IORING_OP_LAST * sizeof(struct io_uring_probe_op)];
	} there;

	(void)ring;
	there.probe.last_op = IORING_OP_LAST - 1;
	there.probe.ops[IORING_OP_MSG_RING].flags = IO_URING_OP_SUPPORTED;
	return &there.probe;
}

void __wrap_io_uring_free_probe(struct io_uring_probe *probe)
{
	(void)probe;
}
