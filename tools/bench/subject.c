/* SPDX-License-Identifier: MIT */
/* Lists the subjects, of which each is weak, because its library may be missing. See subject.h. */
#include "subject.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clocks.h"

#define EACH_SUBJECT(X)                                                                            \
	X(timerhub_loop_alone)                                                                     \
	X(timerhub_loop)                                                                           \
	X(timerhub)                                                                                \
	X(timerhub_many)                                                                           \
	X(heap)                                                                                    \
	X(heap_loop)                                                                               \
	X(hop)                                                                                     \
	X(timerfd)                                                                                 \
	X(libev)                                                                                   \
	X(libevent)                                                                                \
	X(libuv)                                                                                   \
	X(store)                                                                                   \
	X(sqlite)                                                                                  \
	X(beanstalkd)
#define DECLARE(name) extern const struct subject subject_##name __attribute__((weak));
#define ADDRESS(name) &subject_##name,

EACH_SUBJECT(DECLARE)

void (*subject_expired)(uint32_t timer);
__thread uint64_t subject_cached_ns;

static const struct subject *const all[] = { EACH_SUBJECT(ADDRESS) };
const struct subject *subjects[sizeof(all) / sizeof(all[0]) + 1];

__attribute__((constructor)) static void subjects_collect(void)
{
	for (unsigned i = 0, count = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i] && (!all[i]->there || all[i]->there()))
			subjects[count++] = all[i];
}

void subject_fail(const char *what, int error)
{
	(void)fprintf(stderr, "timerhub-bench: %s: %s\n", what,
	              error != 0 ? strerror(error) : "failed");
	_exit(2);
}

void subject_cache_now(void)
{
	subject_cached_ns = now_ns();
}

int subject_epoll(int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

	if (epoll_fd < 0 || (fd >= 0 && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0))
		subject_fail("epoll", errno);
	return epoll_fd;
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
