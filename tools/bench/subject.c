/* SPDX-License-Identifier: MIT */
/* The list of subjects, and their common functions. See subject.h. */
#include "subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "subject_list.h"

void (*subject_expired)(uint32_t timer);

const struct subject *const subjects[] = {
	&subject_floor,
	&subject_touch,
	&subject_timerhub_loop,
	&subject_timerhub_loop_alone,
	&subject_timerhub,
	&subject_timerhub_many,
	&subject_timerhub_spin,
	&subject_timerhub_huge,
	&subject_heap,
	&subject_heap_loop,
#ifdef HAVE_LIBEV
	&subject_libev,
#endif
#ifdef HAVE_LIBUV
	&subject_libuv,
#endif
#ifdef HAVE_LIBEVENT
	&subject_libevent,
#endif
#ifdef HAVE_ASIO
	&subject_asio,
#endif
	&subject_timerfd,
	&subject_timerfd_loop,
#ifdef HAVE_URING
	&subject_uring,
#endif
#ifdef HAVE_GO
	&subject_go,
#endif
	&subject_journal,
	&subject_journal_submit,
	&subject_journal_take,
	&subject_beanstalkd,
	&subject_sync_append,
	&subject_sync_batch,
	&subject_sync_overwrite,
	NULL,
};

const struct subject *subject_find(const char *name)
{
	for (unsigned i = 0; subjects[i]; i++)
		if (strcmp(subjects[i]->name, name) == 0)
			return subjects[i];
	return NULL;
}

void subject_fail(const char *what, int error)
{
	(void)fprintf(stderr, "timerhub-bench: %s: %s\n", what,
	              error != 0 ? strerror(error) : "failed");
	_exit(2);
}

void *subject_allocate(uint64_t count, uint64_t bytes)
{
	size_t size = (size_t)(count * bytes);
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED)
		subject_fail("mmap", 0);
	return memory;
}
