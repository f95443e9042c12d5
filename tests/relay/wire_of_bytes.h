/* SPDX-License-Identifier: MIT */
/* A connection to a server that has said some bytes and hung up. */
#ifndef TESTS_RELAY_WIRE_OF_BYTES_H
#define TESTS_RELAY_WIRE_OF_BYTES_H

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <relay/wire.h>

#include "harness.h"

/* Returns NULL if the bytes do not fit in a socket's buffer. */
static inline struct wire *wire_of_bytes(const void *bytes, size_t count)
{
	struct address address = { .path = "" };
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), peer;
	struct wire *wire;
	ssize_t sent;

	expect(listener >= 0);
	(void)snprintf(name.sun_path, sizeof(name.sun_path), "/tmp/timerhub-bytes-%d", getpid());
	memcpy(address.path, name.sun_path, sizeof(name.sun_path));
	(void)unlink(name.sun_path);
	expect_eq(bind(listener, (struct sockaddr *)&name, sizeof(name)), 0);
	expect_eq(listen(listener, 1), 0);
	expect_eq(wire_open(&wire, &address), 0);
	peer = accept(listener, NULL, NULL);
	expect(peer >= 0);
	(void)unlink(name.sun_path);
	(void)close(listener);
	sent = count > 0 ? send(peer, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
	(void)close(peer);
	if (sent == (ssize_t)count)
		return wire;
	wire_close(wire);
	return NULL;
}

#endif
