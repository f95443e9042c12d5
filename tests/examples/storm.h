/* SPDX-License-Identifier: MIT */
/*
 * The storm that each recipe of examples/loops must survive: connections whose data lies in the
 * socket, and whose first handler takes as long as their idle timeout. The handlers of the others
 * move their timeouts, so a recipe that serves a batch of sockets before it turns hangs up nobody.
 * The first handler takes no time, but gives the others a deadline in the past: a stall of the
 * machine before the first wait must hang up nobody. One wait of libevent or libev returns fewer
 * connections.
 */
#ifndef STORM_H
#define STORM_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <timerhub_loop.h>
#include <unistd.h>

#define CONNECTIONS 300
#define HOUR_NS UINT64_C(3600000000000)

static struct connection {
	struct timerhub_timeout idle; /* the first member */
	int fds[2];
} connections[CONNECTIONS];

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

static void storm_open(struct timerhub_loop *loop)
{
	storm_loop = loop;
	for (int i = 0; i < CONNECTIONS; i++) {
		struct connection *one = &connections[i];

		storm_must("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, one->fds) == 0);
		storm_must("add", timerhub_timeout_add(loop, &one->idle, on_idle) == 0);
		storm_must("set", timerhub_timeout_set(loop, &one->idle, HOUR_NS) == 0);
	}
}

static void storm_send(void)
{
	for (int i = 0; i < CONNECTIONS; i++)
		storm_must("write", write(connections[i].fds[1], "x", 1) == 1);
}

/* All timeouts but that of `served_one` are due. */
static void storm_all_due(const struct connection *served_one)
{
	for (int i = 0; i < CONNECTIONS; i++)
		if (&connections[i] != served_one)
			storm_must("set", timerhub_timeout_set_at(storm_loop, &connections[i].idle,
			                                          1) == 0);
}

/* Handles a connection whose socket is readable. */
static void storm_serve(struct connection *one)
{
	char byte;

	storm_must("read", read(one->fds[0], &byte, 1) == 1);
	storm_must("set", timerhub_timeout_set(storm_loop, &one->idle, HOUR_NS) == 0);
	if (served++ == 0)
		storm_all_due(one);
}

/* Returns the exit status. */
static int storm_verdict(void)
{
	printf("served %d, hung up %d of %d\n", served, hung_up, CONNECTIONS);
	return served == CONNECTIONS && hung_up == 0 ? 0 : 1;
}

#endif
