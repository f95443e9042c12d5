/* SPDX-License-Identifier: MIT */
/*
 * Takes the place of liburing's function, also where the library calls it, because the loader finds
 * the program's first.
 */
#include "older_uring.h"

bool uring_is_older, uring_was_made;

#ifndef TIMERHUB_WITHOUT_IO_URING

#include <dlfcn.h>
#include <liburing.h>
#include <stdlib.h>

#define FEAT_NO_IOWAIT (1u << 17) /* newer than some headers */

typedef int queue_init(unsigned entries, struct io_uring *ring, unsigned flags);

int io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags)
{
	queue_init *real;
	int result;

	/* as dlsym(3) recommends, because C has no such cast */
	*(void **)&real = dlsym(RTLD_NEXT, "io_uring_queue_init");
	if (!real)
		abort();
	result = real(entries, ring, flags);
	if (result < 0)
		return result;
	uring_was_made = true;
	if (uring_is_older)
		ring->features &= ~FEAT_NO_IOWAIT;
	uring_is_older = (ring->features & FEAT_NO_IOWAIT) == 0;
	return result;
}

#endif
