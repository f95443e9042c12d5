/* SPDX-License-Identifier: MIT */
/*
 * The bell, an eventfd by which one thread wakes another, or tells the program that a queue has
 * events. To ring it is to write to it, which makes it readable; to clear it is to read it. bell.h
 * says what the calls promise.
 *
 * If the second write in bell_ring_by() fails too, another thread has written in between.
 *
 * bell_clear_counted() stores `cleared` only after it has read the eventfd, because another thread
 * that finds `cleared` equal to `writes` does not read it. In `cleared`, the number of writes in
 * progress is always 0. If there are any, they may come after the read. `cleared` then differs from
 * `writes`, so the next bell_clear_counted() reads the eventfd again.
 *
 * bell_ring_counted() counts the end of its write by a relaxed addition. A bell_clear_counted()
 * that does not see the new number may read the eventfd once more than necessary. That does no
 * harm.
 */
#define _GNU_SOURCE
#include "base/bell.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/test_point.h"

/*
 * What a thread adds to the count of rings before it writes to the eventfd, and what it has added
 * in all after that.
 */
#define RINGS_MIDWAY ((uint64_t)1)
#define RINGS_DONE ((uint64_t)1 << 16)

static uint64_t always_one = 1, always_read;
static const struct bell_words always = {
	.ring = { .iov_base = &always_one, .iov_len = sizeof(always_one) },
	.clear = { .iov_base = &always_read, .iov_len = sizeof(always_read) },
};

/*
 * Writes to an eventfd or reads from it. Returns -EAGAIN if its counter is already full or already
 * zero. If a seccomp filter refuses `vector_call`, makes `plain_call`.
 */
static int bell_move(int fd, const struct iovec *words, long vector_call, long plain_call)
{
	long result = syscall(vector_call, fd, words, 1);

	if (result < 0 && errno != EAGAIN)
		result = syscall(plain_call, fd, words->iov_base, words->iov_len);
	return result < 0 ? -errno : 0;
}

static int bell_write(int fd, const struct bell_words *words)
{
	return bell_move(fd, &words->ring, SYS_writev, SYS_write);
}

static int bell_read(int fd, const struct bell_words *words)
{
	return bell_move(fd, &words->clear, SYS_readv, SYS_read);
}

int bell_open(void)
{
	int fd = DESCRIPTOR_ABOVE_STDIO(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), result;

	if (fd < 0)
		return fd;
	/*
	 * Write to the new eventfd once, so that bell_open() fails if a seccomp filter forbids
	 * writing to it. Nobody would notice that later.
	 */
	result = bell_write(fd, &always);
	if (result == 0)
		result = bell_read(fd, &always);
	if (result == 0)
		return fd;
	(void)close(fd);
	return result;
}

void bell_close(int fd)
{
	if (fd >= 0)
		(void)close(fd);
}

void bell_words_init(struct bell_words *words)
{
	*words = (struct bell_words){
		.ring = { .iov_base = &words->one, .iov_len = sizeof(words->one) },
		.clear = { .iov_base = &words->count, .iov_len = sizeof(words->count) },
		.one = 1,
	};
}

void bell_ring_by(int fd, const struct bell_words *words)
{
	int saved_errno = errno;

	/*
	 * The write returns -EAGAIN if the eventfd's counter is full. Then read the eventfd, which
	 * sets the counter to 0, and write again, because pollers with EPOLLET need a new edge.
	 */
	if (bell_write(fd, words) == -EAGAIN) {
		(void)bell_read(fd, words);
		(void)bell_write(fd, words);
	}
	errno = saved_errno;
}

void bell_clear_by(int fd, const struct bell_words *words)
{
	int saved_errno = errno;

	(void)bell_read(fd, words);
	errno = saved_errno;
}

void bell_ring(int fd)
{
	bell_ring_by(fd, &always);
}

void bell_clear(int fd)
{
	bell_clear_by(fd, &always);
}

void bell_ring_counted(int fd, const struct bell_words *words, struct bell_counts *counts)
{
	(void)u64_fetch_add_seq_cst(&counts->writes, RINGS_MIDWAY);
	bell_ring_by(fd, words);
	test_point(TEST_POINT_RING_BEFORE_COUNT);
	/*
	 * Relaxed is enough: a bell_clear_counted() that misses this number only reads the eventfd
	 * once more than necessary.
	 */
	(void)u64_fetch_add_relaxed(&counts->writes, RINGS_DONE - RINGS_MIDWAY);
}

void bell_clear_counted(int fd, const struct bell_words *words, struct bell_counts *counts)
{
	uint64_t rings = u64_load_seq_cst(&counts->writes);

	/*
	 * Relaxed is enough. If `cleared` is out of date, the eventfd is read once more than
	 * necessary.
	 */
	if (rings == u64_load_relaxed(&counts->cleared))
		return;
	bell_clear_by(fd, words);
	/*
	 * The mask sets the number of writes in progress to 0, because such writes may come after
	 * the read above. Then the next bell_clear_counted() reads the eventfd again.
	 */
	u64_store_relaxed(&counts->cleared, rings & ~(RINGS_DONE - 1));
}
