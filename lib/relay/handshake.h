/* SPDX-License-Identifier: MIT */
/*
 * What is done on a new connection: find the server, log in, select the database, check the server,
 * load the functions, and create the queue. Each step waits for its reply, up to `timeout_ns`.
 * handshake_open() takes NULL for `ret_server` and `pause` if they are not needed.
 *
 * Names of functions: each is loaded under two names, timerhub4_put, and for other languages
 * timerhub_put. Clients of version 3 use the plain names too, so handshake_load() replaces plain
 * functions of version 3 only if `replaces`.
 */
#ifndef RELAY_HANDSHAKE_H
#define RELAY_HANDSHAKE_H

#include "relay/keys.h"
#include "relay/wire.h"

/* The settings of the queue, as the server returned them. */
struct handshake {
	uint64_t now_us; /* time on Redis's clock when the server replied */
	uint64_t lease_us;
	uint64_t past_us;
};

/* Lets the caller do other work between attempts, because each may cost a timeout. */
struct handshake_pause {
	bool (*goes_on)(void *arg); /* called after each but the last; false ends the attempt */
	void *arg;
};

/* Connects to the server of an address, or to the master that its Sentinels or nodes name. */
int handshake_open(struct wire **ret_wire, struct address *address, struct address *ret_server,
                   const struct handshake_pause *pause, uint64_t timeout_ns);

/* Asks a Sentinel for the master, by two commands that have a reply each. */
void handshake_ask_master(struct wire *wire, const struct address *address);

/*
 * Reads a Sentinel's reply, which has the master's address. Returns -EROFS if the Sentinel does not
 * know it.
 */
int handshake_read_master(const struct reply *reply, struct address *server);

/* Reads a Sentinel's second reply. Returns the epoch of its configuration, or 0 if unknown. */
uint64_t handshake_read_epoch(const struct reply *reply);

/* Stores the version of our functions on the server, or 0 if they are missing. */
int handshake_version(struct wire *wire, uint64_t *ret_version, uint64_t timeout_ns);

/* Loads our functions if they are missing. `replaces` also allows replacing those of version 3. */
int handshake_load(struct wire *wire, bool replaces, uint64_t timeout_ns);

/* Makes the server refuse changes that `holder` has sent with a lower epoch. */
int handshake_fence(struct wire *wire, const struct keys *keys, const char *holder, uint64_t epoch,
                    uint64_t until_us, uint64_t timeout_ns);

/* Returns 0 if this connection's user has the right to WAIT, which counts replicas. */
int handshake_wait(struct wire *wire, uint64_t timeout_ns);

/* Creates the queue if missing. Returns -EEXIST if it was created with another list of servers. */
int handshake_create(struct wire *wire, const struct keys *keys, uint32_t shards, uint32_t shard,
                     struct handshake *ret_handshake, uint64_t timeout_ns);

/* Sends the buffered command and waits for the reply. An error reply becomes its errno. */
int handshake_call(struct wire *wire, struct reply **ret_reply, uint64_t timeout_ns);

#endif
