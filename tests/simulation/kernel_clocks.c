/* SPDX-License-Identifier: MIT */
/*
 * CLOCK_MONOTONIC is the virtual time of the run. The hub's clock shows kernel.ahead_ns more.
 * kernel_set_clock() changes that, as settimeofday(2) would, and then signals the owner's timerfd,
 * if that was set with TFD_TIMER_CANCEL_ON_SET.
 */
#include <sys/timerfd.h>

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "kernel.h"
#include "memory_models.h"
#include "report.h"

static struct timerfd {
	bool open, armed;
	bool readable; /* the timerfd has expired since the last call of timerfd_settime() */
	bool was_set;  /* true if the wall clock was set since the last call of timerfd_settime() */
	/* TFD_TIMER_CANCEL_ON_SET */
	bool cancels;
	clockid_t clock;
	uint64_t at_ns;
	/* as the caller meant it: a relative time counts from the caller's last clock reading */
	uint64_t meant_ns;
} timerfd;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time);
int __wrap_timerfd_create(int clock, int flags);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *new,
                           struct itimerspec *ret_old);

uint64_t kernel_clock_ns(void)
{
	return scheduler.now_ns + kernel.ahead_ns;
}

/* The owner thread reads its clock. Fails if it has spun for longer than kernel.spin_max_ns. */
static void owner_reads(uint64_t now_ns)
{
	kernel.owner_reads(kernel.owner->relaxes != kernel.owner_relaxes);
	if (kernel.owner->relaxes == kernel.owner_relaxes)
		kernel.owner_spin_ns = now_ns;
	else if (kernel.owner_read_ns > kernel.owner_spin_ns &&
	         kernel.owner_read_ns - kernel.owner_spin_ns > kernel.spin_max_ns)
		report_failure("the owner has spun from %" PRIu64 " to %" PRIu64,
		               kernel.owner_spin_ns, kernel.owner_read_ns);
	kernel.owner_relaxes = kernel.owner->relaxes;
	kernel.owner_read_ns = now_ns;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	uint64_t now_ns;

	scheduler_step();
	if (clock != CLOCK_MONOTONIC && clock != kernel.clock)
		report_failure("clock %d is not the hub's", (int)clock);
	now_ns = clock == CLOCK_MONOTONIC ? scheduler.now_ns : kernel_clock_ns();
	if (scheduler.current == kernel.owner) {
		owner_reads(kernel_clock_ns());
		/* it must see all calls that returned before */
		memory_call();
		if (now_ns > kernel.owner_latest_ns)
			kernel.owner_latest_ns = now_ns;
	}
	if (!scheduler.current->in_signal)
		scheduler.current->read_ns = now_ns;
	ret_time->tv_sec = (time_t)(now_ns / 1000000000u);
	ret_time->tv_nsec = (long)(now_ns % 1000000000u);
	return 0;
}

void timerfd_begin(void)
{
	memset(&timerfd, 0, sizeof(timerfd));
}

static void check_open(int fd)
{
	if (!timerfd_is(fd) || !timerfd.open)
		report_failure("descriptor %d is not an open timerfd", fd);
}

static uint64_t timerfd_now_ns(void)
{
	return timerfd.clock == CLOCK_MONOTONIC ? scheduler.now_ns : kernel_clock_ns();
}

static bool timerfd_will_expire(void)
{
	return timerfd.open && timerfd.armed && !timerfd.readable;
}

uint64_t timerfd_meant_ns(void)
{
	return timerfd_will_expire() ? timerfd.meant_ns : UINT64_MAX;
}

uint64_t timerfd_at_ns(void)
{
	uint64_t now_ns = timerfd_now_ns();

	if (!timerfd_will_expire())
		return UINT64_MAX;
	return scheduler.now_ns + (timerfd.at_ns > now_ns ? timerfd.at_ns - now_ns : 0);
}

static void timerfd_go_off(void)
{
	timerfd.readable = true;
	ring_notice(TIMERFD_FD);
}

void timerfd_look(void)
{
	if (timerfd_will_expire() && timerfd.at_ns <= timerfd_now_ns())
		timerfd_go_off();
}

bool timerfd_readable(void)
{
	return timerfd.readable;
}

/*
 * If the new time makes the timerfd readable, a sleeping owner wakes at once. Otherwise it wakes
 * when the timerfd expires by the new time, if that is sooner.
 */
void kernel_set_clock(uint64_t now_ns)
{
	struct actor *owner = kernel.owner;

	kernel.ahead_ns = now_ns - scheduler.now_ns;
	if (!timerfd.open)
		return;
	if (timerfd.clock != CLOCK_MONOTONIC) {
		timerfd.was_set = kernel.clock == CLOCK_REALTIME;
		if (timerfd.was_set && timerfd.cancels)
			timerfd_go_off();
		else
			timerfd_look();
	}
	if (kernel.owner_sleeps && owner->waits_on && timerfd.readable)
		scheduler_wake(owner->waits_on, 1);
	else if (kernel.owner_sleeps && owner->waits_on)
		scheduler_hasten(owner, timerfd_at_ns());
}

int __wrap_timerfd_create(int clock, int flags)
{
	(void)flags;
	scheduler_step();
	if (clock != kernel.clock || timerfd.open)
		report_failure("this timerfd is not simulated");
	if (kernel_refuses()) {
		errno = EMFILE;
		return -1;
	}
	timerfd = (struct timerfd){ .open = true, .clock = clock };
	kernel.bells++;
	return TIMERFD_FD;
}

void timerfd_close(void)
{
	check_open(TIMERFD_FD);
	timerfd.open = false;
	kernel.bells--;
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *new,
                           struct itimerspec *ret_old)
{
	bool absolute = (flags & TFD_TIMER_ABSTIME) != 0, told;

	scheduler_step();
	check_open(fd);
	if (kernel.forked)
		report_failure("a child sets its parent's timerfd %d", fd);
	if (flags == 0 && (new->it_value.tv_sec | new->it_value.tv_nsec) == 0) {
		timerfd = (struct timerfd){ .open = true, .clock = timerfd.clock };
		return 0;
	}
	if (ret_old || absolute != (timerfd.clock == CLOCK_REALTIME) || new->it_value.tv_sec < 0 ||
	    new->it_value.tv_nsec > 999999999 ||
	    (new->it_value.tv_sec | new->it_value.tv_nsec) == 0 || new->it_interval.tv_nsec != 0)
		report_failure("this setting of the timerfd is not simulated");
	if (kernel_denies()) {
		errno = EPERM;
		return -1;
	}
	timerfd.at_ns =
		(uint64_t) new->it_value.tv_sec * 1000000000u + (uint64_t) new->it_value.tv_nsec;
	timerfd.meant_ns = timerfd.at_ns;
	/* a relative time counts from now; lib/ asks for 1 ns if its deadline has passed */
	if (!absolute && timerfd.at_ns < INT64_MAX) {
		timerfd.meant_ns =
			timerfd.at_ns == 1 ? 0 : scheduler.current->read_ns + timerfd.at_ns;
		timerfd.at_ns += timerfd_now_ns();
	}
	report_tell("  alarm at %" PRIu64, timerfd.at_ns);
	timerfd.armed = timerfd.at_ns < INT64_MAX;
	timerfd.readable = false;
	timerfd.cancels = (flags & TFD_TIMER_CANCEL_ON_SET) != 0;
	told = timerfd.cancels && timerfd.was_set;
	timerfd.was_set = false;
	timerfd_look();
	if (!told)
		return 0;
	kernel.jumps_told++;
	errno = ECANCELED;
	return -1;
}
