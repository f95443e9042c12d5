/* SPDX-License-Identifier: MIT */
/*
 * Lists the subjects (the measured services), and implements their common functions. See subject.h.
 * Each declaration is weak. A subject is only defined if its library was found.
 */
#include "subject.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clocks.h"

/* clang-format off */
#define EACH_SUBJECT(X)                                                                            \
	X(floor) X(touch) X(timerhub_loop) X(timerhub_loop_alone) X(timerhub)                      \
	X(timerhub_many) X(timerhub_spin) X(timerhub_huge) X(timerhub_fifo) X(heap)                \
	X(heap_loop) X(libev) X(libuv) X(libevent) X(asio) X(timerfd) X(timerfd_loop)              \
	X(timerfd_loop_fifo) X(hop) X(go) X(store) X(store_held) X(store_submit)              \
	X(store_submit_held) X(sqlite) X(beanstalkd) X(sync_append) X(sync_batch) X(sync_overwrite)
/* clang-format on */
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
		if (all[i])
			subjects[count++] = all[i];
}

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

bool subject_poll(int fd, uint64_t until_ns)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	uint64_t now = now_ns();
	struct timespec left = timespec_from_ns(until_ns > now ? until_ns - now : 0);
	int ready = ppoll(&poll_fd, 1, until_ns == UINT64_MAX ? NULL : &left, NULL);

	if (ready < 0 && errno != EINTR)
		subject_fail("ppoll", errno);
	return ready > 0;
}

static int set_fifo(int thread)
{
	return sched_setscheduler(thread, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 });
}

bool subject_fifo_there(void)
{
	int policy = sched_getscheduler(0), result;
	struct sched_param param = { 0 };
	static bool said;

	(void)sched_getparam(0, &param);
	result = set_fifo(0);
	if (result < 0 && !said)
		(void)fprintf(stderr, "timerhub-bench: skipped: SCHED_FIFO: %s\n", strerror(errno));
	said = said || result < 0;
	(void)sched_setscheduler(0, policy, &param);
	return result == 0;
}

void subject_fifo(int thread)
{
	if (set_fifo(thread) < 0)
		subject_fail("sched_setscheduler", errno);
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
