/* SPDX-License-Identifier: MIT */
/*
 * The storm that each recipe of examples/loops must survive: connections whose data lies in the
 * socket, and whose first handler takes as long as their idle timeout. The handlers of the others
 * move their timeouts, so a recipe that serves all ready sockets before it turns hangs up nobody.
 * The first handler takes no time, but gives the others a deadline in the past: a stall of the
 * machine before the first wait must hang up nobody. One wait of most libraries returns fewer
 * connections. An eventfd stands for a socket, because a socket pair would take two descriptors.
 */
#ifndef STORM_H
#define STORM_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <timerhub_loop.h>
#include <unistd.h>

#define CONNECTIONS_MAX 6000
#define OTHER_DESCRIPTORS 50
#define HOUR_NS UINT64_C(3600000000000)

static struct connection {
	struct timerhub_timeout idle; /* the first member */
	int fd;
} connections[CONNECTIONS_MAX];

static int connection_count = 300;
static struct timerhub_loop *storm_loop;
static int served, hung_up;

static void storm_must(const char *what, bool good)
{
	if (good)
		return;
	perror(what);
	exit(2);
}

static void on_idle(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	(void)loop;
	(void)timeout;
	hung_up++;
}

static void storm_allow_descriptors(void)
{
	struct rlimit limit;

	storm_must("getrlimit", getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = limit.rlim_max;
	if (limit.rlim_max < (rlim_t)connection_count + OTHER_DESCRIPTORS) {
		printf("skipped: the limit of descriptors is %ju\n", (uintmax_t)limit.rlim_max);
		exit(77);
	}
	storm_must("setrlimit", setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

static void storm_open(struct timerhub_loop *loop)
{
	storm_loop = loop;
	storm_allow_descriptors();
	for (int i = 0; i < connection_count; i++) {
		struct connection *one = &connections[i];

		one->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		storm_must("eventfd", one->fd >= 0);
		storm_must("add", timerhub_timeout_add(loop, &one->idle, on_idle) == 0);
		storm_must("set", timerhub_timeout_set(loop, &one->idle, HOUR_NS) == 0);
	}
}

static void storm_send(void)
{
	for (int i = 0; i < connection_count; i++)
		storm_must("write", eventfd_write(connections[i].fd, 1) == 0);
}

/* All timeouts but that of `served_one` are due. */
static void storm_all_due(const struct connection *served_one)
{
	for (int i = 0; i < connection_count; i++)
		if (&connections[i] != served_one)
			storm_must("set", timerhub_timeout_set_at(storm_loop, &connections[i].idle,
			                                          1) == 0);
}

/* Handles a connection whose socket is readable. */
static void storm_serve(struct connection *one)
{
	eventfd_t data;

	storm_must("read", eventfd_read(one->fd, &data) == 0);
	storm_must("set", timerhub_timeout_set(storm_loop, &one->idle, HOUR_NS) == 0);
	if (served++ == 0)
		storm_all_due(one);
}

/* Returns the exit status. */
static int storm_verdict(void)
{
	printf("served %d, hung up %d of %d\n", served, hung_up, connection_count);
	return served == connection_count && hung_up == 0 ? 0 : 1;
}

#endif
