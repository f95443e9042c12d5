/* SPDX-License-Identifier: MIT */
/* See sleeper.h. Tested through every call: tests/relay. */
#define _GNU_SOURCE
#include "relay/sleeper.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <timerhub_loop.h>
#include <unistd.h>

#include "relay/flag.h"

#define NS_PER_S UINT64_C(1000000000)
/* Beyond a year from now there is nothing to wake for. */
#define REACH_NS (UINT64_C(366) * 86400 * NS_PER_S)

struct nap {
	struct timerhub_loop *loop; /* of the thread that sleeps; NULL: it has not begun */
	struct timerhub_timeout alarm;
	bool rung;   /* the alarm, in this sleep */
	int loop_fd; /* the loop's */
	int wake_fd;
};

int nap_open(struct nap **ret_nap)
{
	struct nap *nap = malloc(sizeof(*nap));
	int result;

	if (!nap)
		return -ENOMEM;
	*nap = (struct nap){ .wake_fd = flag_open() };
	if (nap->wake_fd < 0) {
		result = nap->wake_fd;
		free(nap);
		return result;
	}
	*ret_nap = nap;
	return 0;
}

static void ring(struct timerhub_loop *loop, struct timerhub_timeout *alarm)
{
	struct nap *nap = (struct nap *)(void *)((char *)alarm - offsetof(struct nap, alarm));

	(void)loop;
	nap->rung = true;
}

int nap_begin(struct nap *nap)
{
	const struct timerhub_loop_config config = {
		.size = sizeof(config),
		.timeouts_max = 1,
		.clock = TIMERHUB_CLOCK_BOOTTIME,
	};
	int result = timerhub_loop_open(&nap->loop, NULL, &config);

	if (result < 0)
		return result;
	nap->loop_fd = timerhub_loop_fd(nap->loop);
	return nap->loop_fd < 0 ? nap->loop_fd : timerhub_timeout_add(nap->loop, &nap->alarm, ring);
}

void nap_close(struct nap *nap)
{
	if (!nap)
		return;
	timerhub_loop_close(nap->loop);
	(void)close(nap->wake_fd);
	free(nap);
}

uint64_t nap_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now); /* it exists everywhere */
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void set_alarm(struct nap *nap, uint64_t until_ns, uint64_t now_ns)
{
	/* The alarm is added, and the time in reach: no call can be refused. */
	if (until_ns - now_ns > REACH_NS)
		(void)timerhub_timeout_stop(nap->loop, &nap->alarm);
	else
		(void)timerhub_timeout_set_at(nap->loop, &nap->alarm, until_ns);
}

static bool is_ready(const struct pollfd *fds, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (fds[i].revents)
			return true;
	return false;
}

void nap_sleep(struct nap *nap, struct pollfd *fds, unsigned count, uint64_t until_ns)
{
	uint64_t now_ns = nap_now_ns();

	fds[count] = (struct pollfd){ .fd = nap->wake_fd, .events = POLLIN };
	fds[count + 1] = (struct pollfd){ .fd = nap->loop_fd, .events = POLLIN };
	nap->rung = until_ns <= now_ns;
	if (!nap->rung)
		set_alarm(nap, until_ns, now_ns);
	do {
		if (!nap->rung)
			(void)timerhub_loop_turn(nap->loop);
		(void)poll(fds, nap->rung ? count + 1 : count + 2, nap->rung ? 0 : -1);
	} while (!nap->rung && !is_ready(fds, count + 1)); /* the loop looks at an alarm early */
	if (fds[count].revents)
		flag_lower(nap->wake_fd);
}

void nap_wake(struct nap *nap)
{
	flag_raise(nap->wake_fd);
}
