/* SPDX-License-Identifier: MIT */
/*
 * Implements the detection of forked children (fork_check.h) by madvise(2). No other file of the
 * journal includes sys/mman.h. The tests in tests/journal test this file with fork(2).
 */
#define _GNU_SOURCE
#include "journal/fork_check.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

/*
 * Size of the mapping that holds the word fork_check->word. The kernel rounds the size of the
 * mapping up to a page.
 */
#define LIFE_BYTES sizeof(uint32_t)

int fork_check_open(struct fork_check *fork_check)
{
	void *page =
		mmap(NULL, LIFE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int result;

	if (page == MAP_FAILED)
		return -errno;
	if (madvise(page, LIFE_BYTES, MADV_WIPEONFORK) < 0) {
		result = -errno;
		(void)munmap(page, LIFE_BYTES);
		return result;
	}
	fork_check->word = page;
	*fork_check->word = 1;
	return 0;
}

void fork_check_close(struct fork_check *fork_check)
{
	if (fork_check->word)
		(void)munmap(fork_check->word, LIFE_BYTES);
	fork_check->word = NULL;
}
