/* SPDX-License-Identifier: MIT */
/*
 * Finds out whether the kernel zeroes a page in a forked child, and compares process numbers where
 * it does not. fork_check.h has the fast question. It is tested by tests/service/test_fork.c,
 * tests/store and tests/relay.
 */
#define _GNU_SOURCE
#include "base/fork_check.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Asks the kernel to zero the page in a forked child, and returns whether it will. An emulator
 * (qemu-user before 7.1) accepts any advice and follows none, so it is also given one that a kernel
 * would refuse.
 */
static bool page_is_wiped_on_fork(void *page, size_t bytes)
{
	return madvise(page, bytes, MADV_WIPEONFORK) == 0 && madvise(page, bytes, -1) < 0;
}

int fork_check_open(struct fork_check *fork_check, size_t bytes)
{
	void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return -errno;
	*fork_check = (struct fork_check){ .is_opener = page, .bytes = bytes };
	if (page_is_wiped_on_fork(page, bytes))
		*fork_check->is_opener = 1;
	else
		fork_check->pid = getpid();
	return 0;
}

int fork_check_compare_pid(const struct fork_check *fork_check)
{
	return fork_check->pid != 0 && fork_check->pid == getpid() ? 0 : -EOWNERDEAD;
}

void fork_check_renew(struct fork_check *fork_check)
{
	if (fork_check->pid != 0)
		fork_check->pid = getpid();
	else
		*fork_check->is_opener = 1; /* the kernel zeroes the page at the next fork, too */
}

void fork_check_close(struct fork_check *fork_check)
{
	if (fork_check->is_opener)
		(void)munmap(fork_check->is_opener, fork_check->bytes);
	fork_check->is_opener = NULL;
}
