/* SPDX-License-Identifier: MIT */
/*
 * The daemon: opens each queue as an alarm clock, and waits for a signal. Tells its service manager
 * when it serves and, asked to, that it is alive: its relays' threads answer.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <timerhub_relay.h>
#include <unistd.h>

#include "tool.h"

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define TRY_NS (UINT64_C(1000) * NS_PER_MS)
#define US_PER_S UINT64_C(1000000)
#define HOUR_US (UINT64_C(3600) * US_PER_S)

/* sd_notify(3), without its library. A manager that does not listen must not hold us up. */
static void notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (len == 0 || len >= sizeof(to.sun_path))
		return;
	memcpy(to.sun_path, path, len);
	if (path[0] == '@')
		to.sun_path[0] = '\0'; /* of the abstract name space */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
	             (const struct sockaddr *)&to,
	             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	(void)close(fd);
}

/* How often the manager is to be told that we are alive. */
static uint64_t watchdog_us(void)
{
	const char *text = getenv("WATCHDOG_USEC");
	uint64_t us = text ? strtoull(text, NULL, 10) / 2 : 0;

	return us > 0 && us < HOUR_US ? us : HOUR_US;
}

/* The signal that came within that time; 0: none. */
static int wait_for_signal(const sigset_t *signals, uint64_t us)
{
	struct timespec timeout = {
		.tv_sec = (time_t)(us / US_PER_S),
		.tv_nsec = (long)(us % US_PER_S) * 1000,
	};
	int number = sigtimedwait(signals, NULL, &timeout);

	return number > 0 ? number : 0;
}

/* A server that is not there yet will come; bad rights, or a bad name, will not be cured. */
static bool may_come(int error)
{
	return error != -EINVAL && error != -EOPNOTSUPP && error != -EEXIST && error != -EACCES &&
	       error != -EBADMSG && error != -ENOMEM && error != -EPROTO && error != -E2BIG;
}

/* 0; a negative errno; 1: told to end meanwhile. */
static int open_queue(struct timerhub_relay **ret_relay, const char *queue,
                      const struct options *options, const struct timerhub_relay_config *config,
                      const sigset_t *signals)
{
	bool told = false;

	for (;;) {
		int result = timerhub_relay_open(ret_relay, queue, config);

		if (result == 0 || !may_come(result))
			return result;
		if (!told)
			(void)complain(options, queue, result);
		told = true;
		if (wait_for_signal(signals, US_PER_S / 10) > 0)
			return 1;
	}
}

/* Every relay's thread answers, be it that the server does not. */
static void check_life(struct timerhub_relay **relays, int count)
{
	struct timerhub_relay_stats stats;

	for (int i = 0; i < count; i++)
		(void)timerhub_relay_stats(relays[i], &stats);
}

enum status daemon_run(const struct options *options, char **queues, int count)
{
	struct timerhub_relay_config config = {
		.size = sizeof(config),
		.flags = TIMERHUB_RELAY_SERVE,
		.redis = options->redis,
		.horizon_ns = options->horizon_ms * NS_PER_MS,
		.grace_ns = options->grace_ms * NS_PER_MS,
		.batch = (uint32_t)options->batch,
		/* A server that is lost must not keep us from telling that we are alive. */
		.timeout_ns = TRY_NS,
	};
	uint64_t most_ns = watchdog_us() * NS_PER_US / 2 / (uint64_t)count;
	struct timerhub_relay **relays = calloc((size_t)count, sizeof(*relays));
	enum status status = GOOD;
	int opened = 0, result = 0;
	sigset_t signals;

	if (config.timeout_ns > most_ns)
		config.timeout_ns = most_ns;
	if (!relays)
		return complain(options, "run", -ENOMEM);
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	for (; opened < count && result == 0; opened += result == 0)
		result = open_queue(&relays[opened], queues[opened], options, &config, &signals);
	if (result < 0)
		status = complain(options, queues[opened], result);
	if (result == 0) {
		notify("READY=1");
		while (wait_for_signal(&signals, watchdog_us()) == 0) {
			check_life(relays, count);
			notify("WATCHDOG=1");
		}
	}
	notify("STOPPING=1");
	for (int i = 0; i < opened; i++)
		timerhub_relay_close(relays[i]);
	free(relays);
	return status;
}
