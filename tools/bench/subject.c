/* SPDX-License-Identifier: MIT */
/* The list of the subjects, and what they share. See subject.h. */
#include "subject.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"

void (*subject_expired)(uint32_t timer);
__thread uint64_t subject_cached_ns;

const struct subject *subjects[SUBJECTS_MAX + 1];

void subject_add(const struct subject *subject)
{
	unsigned count = 0;

	while (subjects[count])
		count++;
	if (count == SUBJECTS_MAX)
		subject_fail("too many subjects", 0);
	subjects[count] = subject;
}

void subject_fail(const char *what, int error)
{
	(void)fprintf(stderr, "timerhub-bench: %s: %s\n", what,
	              error != 0 ? strerror(error) : "failed");
	_exit(2);
}

void subject_cache_now(void)
{
	subject_cached_ns = clock_monotonic_ns();
}

void *subject_allocate(uint64_t count, uint64_t bytes)
{
	size_t size = (size_t)(count * bytes);
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED)
		subject_fail("mmap", errno);
	return memory;
}
