/* SPDX-License-Identifier: MIT */
/* See nap.h. Tested through every call: tests/relay. */
#define _GNU_SOURCE
#include "nap.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "flag.h"

#define NS_PER_S UINT64_C(1000000000)
/* Beyond a year from now the thread may as well come for nothing. */
#define REACH_NS (UINT64_C(366) * 86400 * NS_PER_S)

struct nap {
	int timer_fd;
	int wake_fd;
	uint64_t until_ns; /* what the timer is set to; 0: it has rung, or was never set */
};

int nap_open(struct nap **ret_nap)
{
	struct nap *nap = malloc(sizeof(*nap));
	int result = 0;

	if (!nap)
		return -ENOMEM;
	*nap = (struct nap){ .timer_fd = -1, .wake_fd = flag_open() };
	if (nap->wake_fd < 0)
		result = nap->wake_fd;
	else
		nap->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (result == 0 && nap->timer_fd < 0)
		result = -errno;
	if (result < 0) {
		nap_close(nap);
		return result;
	}
	*ret_nap = nap;
	return 0;
}

void nap_close(struct nap *nap)
{
	if (!nap)
		return;
	if (nap->timer_fd >= 0)
		(void)close(nap->timer_fd);
	if (nap->wake_fd >= 0)
		(void)close(nap->wake_fd);
	free(nap);
}

uint64_t nap_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now); /* it exists everywhere */
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Set the timer, unless it is set to that time already. */
static void set_timer(struct nap *nap, uint64_t until_ns, uint64_t now_ns)
{
	uint64_t delay_ns = until_ns - now_ns < REACH_NS ? until_ns - now_ns : REACH_NS;
	struct itimerspec spec = { .it_value = { .tv_sec = (time_t)(delay_ns / NS_PER_S),
		                                 .tv_nsec = (long)(delay_ns % NS_PER_S) } };

	if (until_ns == nap->until_ns)
		return;
	(void)timerfd_settime(nap->timer_fd, 0, &spec, NULL); /* fails only for what is no time */
	nap->until_ns = until_ns;
}

void nap_sleep(struct nap *nap, struct pollfd *fds, unsigned count, uint64_t until_ns)
{
	uint64_t now_ns = nap_now_ns(), rung;

	fds[count] = (struct pollfd){ .fd = nap->wake_fd, .events = POLLIN };
	fds[count + 1] = (struct pollfd){ .fd = nap->timer_fd, .events = POLLIN };
	if (until_ns <= now_ns) {
		(void)poll(fds, count + 1, 0);
	} else {
		set_timer(nap, until_ns, now_ns);
		(void)poll(fds, count + 2, -1);
		if ((fds[count + 1].revents & POLLIN) &&
		    read(nap->timer_fd, &rung, sizeof(rung)) == (ssize_t)sizeof(rung))
			nap->until_ns = 0;
	}
	if (fds[count].revents & POLLIN)
		flag_lower(nap->wake_fd);
}

void nap_wake(struct nap *nap)
{
	flag_raise(nap->wake_fd);
}
