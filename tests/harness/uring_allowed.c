/* SPDX-License-Identifier: MIT */
#include "uring_allowed.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RINGS 32       /* number of rings to try, more than any test program uses at once */
#define RING_ENTRIES 8 /* number of entries of a ring, as in the library's rings */
#define FEATURES (IORING_FEAT_EXT_ARG | IORING_FEAT_CQE_SKIP)

/* Returns the descriptor or a negative errno. */
static int ring_open(void)
{
	struct io_uring_params params;
	int ring;

	memset(&params, 0, sizeof(params));
	ring = (int)syscall(SYS_io_uring_setup, RING_ENTRIES, &params);
	if (ring < 0)
		return -errno;
	if ((params.features & FEATURES) == FEATURES)
		return ring;
	(void)close(ring);
	return -ENOSYS;
}

/* The errno of the first of RINGS that was refused, or 0. */
static int rings_refused(void)
{
	int rings[RINGS];
	unsigned granted = 0;
	int ring = 0;

	while (granted < RINGS && (ring = ring_open()) >= 0)
		rings[granted++] = ring;
	while (granted > 0)
		(void)close(rings[--granted]);
	return ring < 0 ? -ring : 0;
}

/* Sets RLIMIT_MEMLOCK to 0, so that the kernel refuses all later rings, not only some. */
static void lock_nothing(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
		limit.rlim_cur = 0;
		(void)setrlimit(RLIMIT_MEMLOCK, &limit);
	}
}

static int ask(void)
{
#ifdef TIMERHUB_WITHOUT_IO_URING
	return ENOSYS;
#else
	int error = rings_refused();

	if (error == ENOMEM)
		lock_nothing();
	return error;
#endif
}

int uring_refused(void)
{
	static int answer = -1;

	if (answer < 0)
		answer = ask();
	return answer;
}

void uring_needed(void)
{
	int error = uring_refused();

	if (error == 0)
		return;
	printf("skipped: io_uring: %s (errno %d)\n", strerror(error), error);
	exit(EXIT_SKIPPED);
}

/* Returns whether CAP_IPC_LOCK allows the process to lock any amount of memory. */
static bool may_lock_anything(void)
{
	char line[256];
	unsigned long long capabilities = 0;
	FILE *file = fopen("/proc/self/status", "re");

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, "CapEff:", strlen("CapEff:")) == 0)
			capabilities = strtoull(line + strlen("CapEff:"), NULL, 16);
	if (file)
		(void)fclose(file);
	return capabilities >> CAP_IPC_LOCK & 1;
}

bool uring_ran_out(int result)
{
	struct rlimit limit;

	return result == -ENOMEM && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
	       limit.rlim_cur != RLIM_INFINITY && !may_lock_anything();
}
