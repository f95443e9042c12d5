/* SPDX-License-Identifier: MIT */
/* See nap.h. Tested through every call: tests/relay. */
#define _GNU_SOURCE
#include "nap.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <timerhub.h>
#include <unistd.h>

#include "flag.h"

#define TIMERS_MAX 64
/* The hub takes deadlines up to 2^63 - 128 ns. */
#define REACH_NS ((UINT64_C(1) << 63) - 4096)

struct nap {
	struct timerhub *hub;
	struct timerhub_queue *queue;
	timerhub_timer timer;
	uint64_t until_ns; /* what the timer is set to; 0: it has rung, or there is none */
	int wake_fd;
};

static int open_hub(struct nap *nap)
{
	struct timerhub_config config = {
		.size = sizeof(config),
		.timers_max = TIMERS_MAX,
		.clock = TIMERHUB_CLOCK_BOOTTIME,
		.thread_name = "timerhub-relay",
	};
	int result = timerhub_open(&nap->hub, &config);

	return result == 0 ? timerhub_queue_open(nap->hub, &nap->queue, NULL) : result;
}

int nap_open(struct nap **ret_nap)
{
	struct nap *nap = calloc(1, sizeof(*nap));
	int result;

	if (!nap)
		return -ENOMEM;
	nap->wake_fd = flag_open();
	result = nap->wake_fd < 0 ? nap->wake_fd : open_hub(nap);
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
	timerhub_close(nap->hub);
	if (nap->wake_fd >= 0)
		(void)close(nap->wake_fd);
	free(nap);
}

uint64_t nap_now_ns(const struct nap *nap)
{
	return timerhub_now(nap->hub);
}

static void set_timer(struct nap *nap, uint64_t until_ns)
{
	struct timerhub_spec spec = {
		.size = sizeof(spec),
		.flags = TIMERHUB_ABSOLUTE,
		.expires_ns = until_ns,
	};

	if (until_ns == nap->until_ns)
		return;
	/* Arming cannot be refused: there is room, and only one lives at a time. */
	if (nap->until_ns == 0 ||
	    timerhub_rearm(nap->hub, nap->timer, until_ns, TIMERHUB_ABSOLUTE) < 0)
		(void)timerhub_arm(nap->queue, &spec, &nap->timer);
	nap->until_ns = until_ns;
}

void nap_sleep(struct nap *nap, struct pollfd *fds, unsigned count, uint64_t until_ns)
{
	struct timerhub_event event;

	if (until_ns > REACH_NS && until_ns != UINT64_MAX)
		until_ns = REACH_NS;
	fds[count] = (struct pollfd){ .fd = nap->wake_fd, .events = POLLIN };
	fds[count + 1] = (struct pollfd){ .fd = timerhub_queue_fd(nap->queue), .events = POLLIN };
	if (until_ns <= nap_now_ns(nap)) {
		(void)poll(fds, count + 1, 0);
	} else {
		set_timer(nap, until_ns);
		(void)poll(fds, count + 2, -1);
	}
	flag_lower(nap->wake_fd);
	if (timerhub_drain(nap->queue, &event, 1) == 1)
		nap->until_ns = 0;
}

void nap_wake(struct nap *nap)
{
	flag_raise(nap->wake_fd);
}
