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
 * Connects to the server of an address. If the address lists Sentinels or nodes of a cluster, it
 * asks them for the master and connects to that. Stores the address of the connected server in
 * *ret_server, unless that is NULL. Returns 0, a network error, -EROFS if the server is a replica
 * or no master is known, -EOPNOTSUPP if it is older than 7.0 or not of the kind that the address
 * says, or the errno of an error reply.
 */
int handshake_open(struct wire **ret_wire, struct address *address, struct address *ret_server,
                   uint64_t timeout_ns);

/*
 * Asks a Sentinel for the master by two commands. handshake_read_master() reads the first reply,
 * and handshake_read_epoch() the second: the epoch of the Sentinel's configuration, or 0 if it does
 * not tell. If two Sentinels disagree, the higher epoch is right.
 */
void handshake_ask_master(struct wire *wire, const struct address *address);
int handshake_read_master(const struct reply *reply, struct address *server);
uint64_t handshake_read_epoch(const struct reply *reply);

/*
 * Finds out whether the server has the Redis functions that this library calls. Stores their
 * version in *ret_version, or 0 if the server does not have them.
 */
int handshake_version(struct wire *wire, uint64_t *ret_version, uint64_t timeout_ns);

/*
 * Loads the Redis functions of this version, each under two names, if the server lacks them. This
 * library calls timerhub4_put, the name with the version; programs in other languages call the
 * plain name, timerhub_put. Plain names of an older version are replaced; its clients still find
 * the names with its version. Plain names of version 3 are replaced only if `replaces` is true,
 * because clients of version 3 call no other names.
 */
int handshake_load(struct wire *wire, bool replaces, uint64_t timeout_ns);

/*
 * Makes the server refuse changes of client `holder` whose epoch is lower than `epoch`, until
 * `until_us` on Redis's clock. A client raises its epoch when it loses a connection with unanswered
 * changes. So these changes do nothing if they still arrive.
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
