/* SPDX-License-Identifier: MIT */
/*
 * All memory that the library maps comes from one pool, so that plain_accesses.c can check the
 * accesses to it. Memory that the library gives back is zeroed, and poisoned for AddressSanitizer.
 */
#include "kernel.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "detect_asan.h"
#include "plain_accesses.h"
#include "report.h"

#ifndef WITH_ASAN
#define ASAN_POISON_MEMORY_REGION(begin, bytes) ((void)(begin), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(begin, bytes) ((void)(begin), (void)(bytes))
#endif

#define BELL_FIRST_FD 1000
#define BELLS_MAX 32
/* A hub keeps the memory of up to 64 closed queues; a leak soon exhausts the rest. */
#define REGIONS_MAX 128

struct kernel kernel;
static struct bell bells[BELLS_MAX];
/* carried by the kernel's lock of the mappings */
static struct memory_view mappings_view;
/* by actor: the view of who woke it last from a futex */
static struct memory_view woken_views[ACTORS_MAX];

/* Sizes are powers of two, so that a freed region often fits again. */
static struct region {
	char *base;
	size_t bytes;       /* size of the region, a power of two */
	size_t asked;       /* bytes that the caller asked for, or 0 if the region is free */
	bool wiped_on_fork; /* a forked child finds it zeroed */
} regions[REGIONS_MAX];
static unsigned regions_made;
static size_t pool_used;

static struct {
	void *(*start)(void *argument);
	void *argument;
} thread_born;

void kernel_begin(struct dice dice)
{
	kernel = (struct kernel){ .dice = dice };
	kernel.fail_one_in = dice_one_in(&kernel.dice, 2) ? 0 : 4;
	kernel.refuse_one_in = dice_one_in(&kernel.dice, 4) ? 8 : 0;
	kernel.ring_refused = dice_one_in(&kernel.dice, 4);
	kernel.cpus = 1u << dice_below(&kernel.dice, 3);
	kernel.clock = CLOCK_MONOTONIC;
	kernel.late_dice = dice_seeded(kernel.dice.state, 1);
	kernel.late_ns =
		dice_one_in(&kernel.late_dice, 2) ? 0 : dice_magnitude(&kernel.late_dice, 16);
	kernel.ring_counts_iowait = dice_one_in(&kernel.late_dice, 2);
	memset(&mappings_view, 0, sizeof(mappings_view));
	ring_begin();
	timerfd_begin();
}

bool kernel_refuses(void)
{
	return kernel.refuse_after > 0 && --kernel.refuse_after == 0;
}

bool kernel_interrupts(void)
{
	return kernel.fail_one_in > 0 && dice_one_in(&kernel.dice, kernel.fail_one_in);
}

bool kernel_denies(void)
{
	return kernel.refuse_one_in > 0 && dice_one_in(&kernel.dice, kernel.refuse_one_in);
}

/* ---- processors ---- */

int __wrap_sched_getcpu(void);
long __wrap_sysconf(int name);
long __real_sysconf(int name);
int __wrap_prctl(int option, ...);

int __wrap_sched_getcpu(void)
{
	unsigned home = (unsigned)(scheduler.current - scheduler.actors);

	if ((scheduler.switches & 15) == 0)
		home++;
	return (int)(home & (kernel.cpus - 1));
}

long __wrap_sysconf(int name)
{
	/* a sanitizer asks other things */
	return name == _SC_NPROCESSORS_CONF ? (long)kernel.cpus : __real_sysconf(name);
}

int __wrap_prctl(int option, ...)
{
	(void)option;
	return 0;
}

/* ---- eventfds ---- */

int __wrap_eventfd(unsigned count, int flags);
int __wrap_close(int fd);
int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                 const sigset_t *mask);

struct bell *kernel_bell(int fd)
{
	struct bell *bell = &bells[fd - BELL_FIRST_FD];

	if (fd < BELL_FIRST_FD || fd >= BELL_FIRST_FD + BELLS_MAX || !bell->open)
		report_failure("descriptor %d is not open", fd);
	return bell;
}

bool kernel_readable(int fd)
{
	return timerfd_is(fd) ? timerfd_readable() : kernel_bell(fd)->count > 0;
}

int __wrap_eventfd(unsigned count, int flags)
{
	(void)flags;
	scheduler_step();
	if (kernel_refuses()) {
		errno = EMFILE;
		return -1;
	}
	for (int i = 0; i < BELLS_MAX; i++)
		if (!bells[i].open) {
			bells[i] = (struct bell){ .open = true, .count = count };
			kernel.bells++;
			return BELL_FIRST_FD + i;
		}
	report_failure("too many descriptors");
}

int __wrap_close(int fd)
{
	scheduler_step();
	if (timerfd_is(fd)) {
		timerfd_close();
		return 0;
	}
	kernel_bell(fd)->open = false;
	kernel.bells--;
	return 0;
}

static long bell_write(int fd, uint64_t more)
{
	struct bell *bell = kernel_bell(fd);

	if (kernel.forked)
		report_failure("a child writes to its parent's descriptor %d", fd);
	if (bell->count > UINT64_MAX - 1 - more) {
		errno = EAGAIN;
		return -1;
	}
	report_tell("  ring %d", fd);
	memory_lock(&bell->view);
	bell->count += more;
	bell->edges++;
	scheduler_wake(bell, UINT_MAX);
	ring_notice(fd);
	return sizeof(more);
}

static long bell_read(int fd, uint64_t *ret_count)
{
	struct bell *bell = kernel_bell(fd);

	if (kernel.forked)
		report_failure("a child reads its parent's descriptor %d", fd);
	memory_lock(&bell->view);
	if (bell->count == 0) {
		errno = EAGAIN;
		return -1;
	}
	*ret_count = bell->count;
	bell->count = 0;
	return sizeof(*ret_count);
}

void kernel_read(int fd)
{
	uint64_t count;

	scheduler_step();
	(void)bell_read(fd, &count);
}

void kernel_poll_level(int fd, uint64_t until_ns)
{
	struct bell *bell = kernel_bell(fd);

	scheduler_step();
	while (bell->count == 0 && scheduler.now_ns < until_ns)
		scheduler_block(bell, until_ns);
	memory_lock(&bell->view);
}

void kernel_poll_edge(int fd, uint64_t edges, uint64_t until_ns)
{
	struct bell *bell = kernel_bell(fd);

	scheduler_step();
	while (bell->edges == edges && scheduler.now_ns < until_ns)
		scheduler_block(bell, until_ns);
	memory_lock(&bell->view);
}

/* Mostly at least kernel.late_ns late, one in eight less. */
static uint64_t kernel_late_ns(uint64_t until_ns)
{
	uint64_t late_ns = kernel.late_ns;

	if (late_ns == 0)
		return until_ns;
	if (dice_one_in(&kernel.late_dice, 8))
		late_ns = dice_roll(&kernel.late_dice) % late_ns;
	else
		late_ns += dice_magnitude(&kernel.late_dice, 10);
	return until_ns < UINT64_MAX - late_ns ? until_ns + late_ns : until_ns;
}

void kernel_owner_sleeps(const void *on, uint64_t timeout_ns)
{
	uint64_t until_ns = UINT64_MAX, alarm_ns = timerfd_at_ns();

	kernel.owner_until_ns = timerfd_meant_ns();
	if (timeout_ns != UINT64_MAX) {
		uint64_t by_reading_ns = kernel.owner_read_ns + timeout_ns;

		until_ns = scheduler.now_ns + timeout_ns;
		if (by_reading_ns < kernel.owner_until_ns)
			kernel.owner_until_ns = by_reading_ns;
	}
	report_tell("  owner sleeps until %" PRIu64, kernel.owner_until_ns);
	kernel.owner_sleeps = true;
	scheduler_block(on, kernel_late_ns(alarm_ns < until_ns ? alarm_ns : until_ns));
	kernel.owner_sleeps = false;
	kernel.owner_latest_ns = 0;
	timerfd_look();
}

static uint64_t timeout_of(const struct timespec *timeout)
{
	uint64_t ns;

	if (!timeout)
		return UINT64_MAX;
	if (timeout->tv_sec < 0 || timeout->tv_nsec < 0 || timeout->tv_nsec > 999999999)
		report_failure("a timeout that the kernel would refuse");
	ns = (uint64_t)timeout->tv_sec * 1000000000u + (uint64_t)timeout->tv_nsec;
	/* capped, as in the kernel */
	return ns > UINT64_MAX - 1 - scheduler.now_ns ? UINT64_MAX - 1 - scheduler.now_ns : ns;
}

/* Sets POLLIN; returns how many are readable. */
static int poll_look(struct pollfd *fds, nfds_t count)
{
	int ready = 0;

	for (nfds_t i = 0; i < count; i++) {
		if (timerfd_is(fds[i].fd))
			timerfd_look();
		else if (fds[i].fd >= 0)
			memory_lock(&kernel_bell(fds[i].fd)->view);
		fds[i].revents = fds[i].fd >= 0 && kernel_readable(fds[i].fd) ? POLLIN : 0;
		ready += fds[i].revents != 0;
	}
	return ready;
}

/* The owner thread polls either its io_uring, or its eventfd and its timerfd (-1: it has none). */
int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                 const sigset_t *mask)
{
	uint64_t timeout_ns = timeout_of(timeout), begin_ns;
	int ready;

	if (count == 1 && !timeout && !mask)
		return ring_ppoll(fds);
	scheduler_step();
	begin_ns = scheduler.now_ns;
	if (count != 2 || mask || (fds[1].fd >= 0 && fds[1].fd != TIMERFD_FD))
		report_failure("this kind of poll is not simulated");
	if (kernel_denies()) {
		errno = ENOMEM;
		return -1;
	}
	ready = poll_look(fds, count);
	if (ready == 0 && timeout_ns > 0 && !kernel_interrupts()) {
		kernel_owner_sleeps(kernel_bell(fds[0].fd), timeout_ns);
		ready = poll_look(fds, count);
	}
	if (ready > 0)
		return ready;
	if (timeout_ns != UINT64_MAX && scheduler.now_ns - begin_ns >= timeout_ns)
		return 0;
	errno = EINTR;
	return -1;
}

/* ---- futex(2), and the calls that the library makes by syscall(2) ---- */

long __wrap_syscall(long number, ...);

static long futex(const uint32_t *word, int operation, uint32_t value,
                  const struct timespec *timeout)
{
	uint32_t now = memory_newest(word);
	uint64_t timeout_ns;

	if (operation == FUTEX_WAKE_PRIVATE) {
		for (unsigned i = 0; i < scheduler.count; i++)
			if (scheduler.actors[i].waits_on == word)
				memory_publish(&woken_views[i]);
		scheduler_wake(word, value);
		return 0;
	}
	if (operation != FUTEX_WAIT_PRIVATE)
		report_failure("futex operation %d is not simulated", operation);
	timeout_ns = timeout_of(timeout);
	errno = EAGAIN;
	if (now == value && !kernel_interrupts()) {
		struct memory_view *woken = &woken_views[scheduler.current - scheduler.actors];

		memset(woken, 0, sizeof(*woken));
		scheduler_block(word, timeout ? scheduler.now_ns + timeout_ns : UINT64_MAX);
		memory_acquire(woken);
	}
	return -1;
}

long __wrap_syscall(long number, ...)
{
	va_list arguments;
	long result = -1;

	scheduler_step();
	va_start(arguments, number);
	if (number == SYS_futex) {
		const uint32_t *word = va_arg(arguments, const uint32_t *);
		int operation = va_arg(arguments, int);
		uint32_t value = va_arg(arguments, uint32_t);

		result = futex(word, operation, value, va_arg(arguments, const struct timespec *));
	} else if (number == SYS_writev || number == SYS_readv) {
		int fd = va_arg(arguments, int);
		const struct iovec *words = va_arg(arguments, const struct iovec *);
		uint64_t count;

		if (words->iov_len == 0)
			result = 0; /* in a forked child */
		else if (number == SYS_writev)
			result = bell_write(fd, *(uint64_t *)words->iov_base);
		else
			result = bell_read(fd, &count);
	} else if (number == SYS_ppoll) {
		/* lib/ waits until a due timerfd is readable; a simulated timerfd is so at once */
		result = poll_look(va_arg(arguments, struct pollfd *), 1);
	} else if (number == SYS_gettid) {
		result = getpid(); /* all are the main thread */
	} else {
		report_failure("system call %ld is not simulated", number);
	}
	va_end(arguments);
	return result;
}

/* ---- memory ---- */

void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *address, size_t bytes);
int __wrap_madvise(void *address, size_t bytes, int advice);
int __wrap_posix_memalign(void **ret_memory, size_t alignment, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void __wrap_free(void *allocated);

/* Of this size, or a new one. */
static struct region *region_find(size_t bytes)
{
	struct region *region = regions;

	for (; region < regions + regions_made; region++)
		if (region->asked == 0 && region->bytes == bytes)
			return region;
	if (regions_made == REGIONS_MAX || pool_used + bytes > PLAIN_BYTES)
		report_failure("the simulated kernel is out of memory");
	*region = (struct region){ .base = plain_memory + pool_used, .bytes = bytes };
	pool_used += bytes;
	regions_made++;
	return region;
}

/* At least `bytes`, of which AddressSanitizer allows `usable`. */
static void *region_take(size_t bytes, size_t usable)
{
	size_t rounded = (size_t)1 << (64 - __builtin_clzll(bytes - 1));
	struct region *region =
		region_find(rounded < PLAIN_PAGE_BYTES ? PLAIN_PAGE_BYTES : rounded);

	region->asked = bytes;
	ASAN_POISON_MEMORY_REGION(region->base, region->bytes);
	ASAN_UNPOISON_MEMORY_REGION(region->base, usable);
	memory_allocated(region->base, bytes);
	return region->base;
}

static struct region *region_of(const void *base)
{
	struct region *region = regions;

	while (region < regions + regions_made && region->base != base)
		region++;
	if (region == regions + regions_made || region->asked == 0)
		report_failure("memory is freed that was not allocated");
	return region;
}

static void region_put(struct region *region)
{
	memory_freed(region->base, region->asked);
	ASAN_UNPOISON_MEMORY_REGION(region->base, region->asked);
	memset(region->base, 0, region->asked);
	ASAN_POISON_MEMORY_REGION(region->base, region->bytes);
	region->asked = 0;
	region->wiped_on_fork = false;
}

void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	if (address || fd != -1 || offset != 0 || (flags & MAP_ANONYMOUS) == 0 ||
	    protection != (PROT_READ | PROT_WRITE))
		report_failure("this kind of mapping is not simulated");
	scheduler_step();
	if (kernel_refuses()) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	kernel.regions++;
	memory_lock(&mappings_view);
	return region_take(bytes, (bytes + PLAIN_PAGE_BYTES - 1) & ~(PLAIN_PAGE_BYTES - 1));
}

/* mmap() with _FILE_OFFSET_BITS of 64 */
void *__wrap_mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	return __wrap_mmap(address, bytes, protection, flags, fd, offset);
}

int __wrap_munmap(void *address, size_t bytes)
{
	struct region *region;

	scheduler_step();
	region = region_of(address);
	if (region->asked != bytes)
		report_failure("munmap() of a size that was not mapped");
	memory_lock(&mappings_view);
	region_put(region);
	kernel.regions--;
	return 0;
}

int __wrap_madvise(void *address, size_t bytes, int advice)
{
	(void)bytes;
	if (advice != -1 && !kernel_refuses()) {
		if (advice == MADV_WIPEONFORK) {
			region_of(address)->wiped_on_fork = true;
			kernel.wipes_on_fork = true;
		}
		return 0;
	}
	errno = EINVAL;
	return -1;
}

void kernel_forked(void)
{
	kernel.forked = true;
	for (struct region *region = regions; region < regions + regions_made; region++)
		if (region->wiped_on_fork)
			memset(region->base, 0, region->asked);
}

int __wrap_posix_memalign(void **ret_memory, size_t alignment, size_t bytes)
{
	if (kernel_refuses())
		return ENOMEM;
	if (alignment > PLAIN_PAGE_BYTES)
		report_failure("this alignment is not simulated");
	*ret_memory = region_take(bytes, bytes);
	return 0;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return region_take(count * bytes, count * bytes);
}

void __wrap_free(void *allocated)
{
	if (allocated)
		region_put(region_of(allocated));
}

/* ---- threads ---- */

int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
                          void *(*start)(void *argument), void *argument);
int __wrap_pthread_join(pthread_t thread, void **ret_result);
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *ret_before);

static void thread_main(void *unused)
{
	(void)unused;
	(void)thread_born.start(thread_born.argument);
	kernel.threads--;
}

int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
                          void *(*start)(void *argument), void *argument)
{
	(void)attributes;
	if (kernel_refuses())
		return EAGAIN;
	thread_born.start = start;
	thread_born.argument = argument;
	kernel.threads++;
	kernel.owner = scheduler_spawn(thread_main, NULL);
	*ret_thread = (pthread_t)(kernel.owner - scheduler.actors);
	scheduler_step();
	return 0;
}

int __wrap_pthread_join(pthread_t thread, void **ret_result)
{
	struct actor *actor = &scheduler.actors[thread];

	(void)ret_result;
	while (!actor->over)
		scheduler_block(actor, UINT64_MAX);
	memory_join((unsigned)thread);
	kernel.owner = NULL;
	return 0;
}

int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *ret_before)
{
	(void)how;
	(void)set;
	(void)ret_before;
	return 0;
}
