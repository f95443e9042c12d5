/* SPDX-License-Identifier: MIT */
/*
 * What is done on a new connection: find the server, log in, select the database, check the server,
 * load the functions, and create the queue. Each step waits for its reply, up to `timeout_ns`.
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

/*
 * Asking several Sentinels or cluster nodes can take long, because each one that does not answer
 * costs a timeout. Between two of them, this callback lets the caller do other work.
 */
struct handshake_pause {
	bool (*goes_on)(void *arg); /* called after each but the last; false ends the attempt */
	void *arg;
};

/*
 * Connects to the server of an address, or to the master that its Sentinels or cluster nodes name.
 * Returns -EROFS if there is no master. `ret_server` and `pause` may be NULL.
 */
int handshake_open(struct wire **ret_wire, struct address *address, struct address *ret_server,
                   const struct handshake_pause *pause, uint64_t timeout_ns);

/* Asks a Sentinel for the master, by two commands that have a reply each. */
void handshake_ask_master(struct wire *wire, const struct address *address);

/*
 * Reads a Sentinel's first reply, which names the master. Returns 0, -EROFS if the Sentinel knows
 * no such master, or -EPROTO.
 */
int handshake_read_master(const struct reply *reply, struct address *server);

/*
 * Reads a Sentinel's reply to the second command of handshake_ask_master(). Returns the epoch of
 * the Sentinel's configuration, or 0 if the reply has no epoch. If Sentinels disagree about the
 * master, the one with the highest epoch is right.
 */
uint64_t handshake_read_epoch(const struct reply *reply);

/*
 * Finds out whether the server has the Redis functions that this library calls. Stores their
 * version in *ret_version, or 0 if the server does not have them.
 */
int handshake_version(struct wire *wire, uint64_t *ret_version, uint64_t timeout_ns);

/*
 * Loads the Redis functions that are missing. Each gets two names: timerhub4_put for this library,
 * and timerhub_put for other languages. Functions that version 3 has loaded are replaced only if
 * `replaces` is true.
 */
int handshake_load(struct wire *wire, bool replaces, uint64_t timeout_ns);

/*
 * Each change has the name of its client and a number, the epoch. Makes the server refuse the
 * changes of the client `holder` with a lower epoch than `epoch`, until `until_us` on the server's
 * clock.
 */
int handshake_fence(struct wire *wire, const struct keys *keys, const char *holder, uint64_t epoch,
                    uint64_t until_us, uint64_t timeout_ns);

/*
 * Asks Redis whether this connection's user has the right to use the command WAIT, by which a
 * client learns how many replicas have its changes. Returns 0 if so.
 */
int handshake_wait(struct wire *wire, uint64_t timeout_ns);

/*
 * Creates the queue if it does not exist. Returns -EEXIST if it was created for another number of
 * servers, or with this server at another index.
 */
int handshake_create(struct wire *wire, const struct keys *keys, uint32_t shards, uint32_t shard,
                     struct handshake *ret_handshake, uint64_t timeout_ns);

/*
 * Sends the buffered command and waits for its reply. Returns 0, a network error, or the errno of
 * an error reply.
 */
int handshake_call(struct wire *wire, struct reply **ret_reply, uint64_t timeout_ns);

#endif
