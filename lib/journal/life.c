/* SPDX-License-Identifier: MIT */
/* See life.h. The journal's only home of sys/mman.h. Tested by forking: tests/journal. */
#define _GNU_SOURCE
#include "journal/life.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

/* The kernel rounds it up to a page. */
#define LIFE_BYTES sizeof(uint32_t)

int life_open(struct life *life)
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
	life->word = page;
	*life->word = 1;
	return 0;
}

void life_close(struct life *life)
{
	if (life->word)
		(void)munmap(life->word, LIFE_BYTES);
	life->word = NULL;
}
