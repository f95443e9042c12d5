/* SPDX-License-Identifier: MIT */
/*
 * Prepares a new connection. A handshake finds the server, logs in, selects the database, checks
 * the kind of server, loads the Redis functions, and creates the queue. Each function blocks for up
 * to `timeout_ns` for each reply.
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
 * Connect to a master, by its address or through Sentinels. Stores the master's address in
 * `ret_server`, which may be NULL. Moves useless Sentinels to the end of the list, so that the
 * first one of `address` has named the server. Returns 0 or an error of the network. Returns -EROFS
 * if the server is a replica, or if no Sentinel knows a master. Returns -EOPNOTSUPP if the server
 * is older than 7.0, a cluster node, or a Sentinel. For any other error reply, returns the errno
 * that error_reply.h gives.
 */
int handshake_open(struct wire **ret_wire, struct address *address, struct address *ret_server,
                   uint64_t timeout_ns);

/*
 * Encode the question for the master of `address`, read a Sentinel's first reply into `server`, and
 * the epoch of its configuration from the second. Of two Sentinels that differ, the one with the
 * higher epoch is right; 0 is an epoch that is not told.
 */
void handshake_ask_master(struct wire *wire, const struct address *address);
int handshake_read_master(const struct reply *reply, struct address *server);
uint64_t handshake_read_epoch(const struct reply *reply);

/* Read the version of the Redis functions on the server, or 0 if the server does not have them. */
int handshake_version(struct wire *wire, uint64_t *ret_version, uint64_t timeout_ns);

/* Returns the version of the Redis functions that this library knows. */
uint64_t handshake_own_version(void);

/*
 * Load the Redis functions if the server does not have them or has an older version. If the server
 * has a newer version, returns -EOPNOTSUPP.
 */
int handshake_load(struct wire *wire, uint64_t timeout_ns);

/* Refuse from now on until `until_us` the holder's changes of an epoch below `epoch`. */
int handshake_fence(struct wire *wire, const struct keys *keys, const char *holder, uint64_t epoch,
                    uint64_t until_us, uint64_t timeout_ns);

/* Check that the server lets this user call WAIT. */
int handshake_wait(struct wire *wire, uint64_t timeout_ns);

/*
 * Create the queue if it does not exist. Returns -EEXIST if the queue exists with another number of
 * servers, or if this server has another index in the queue.
 */
int handshake_create(struct wire *wire, const struct keys *keys, uint32_t shards, uint32_t shard,
                     struct handshake *ret_handshake, uint64_t timeout_ns);

/*
 * Send the wire's buffer of commands, and wait for one reply. Returns 0 and the reply, an error of
 * the network, or the errno of an error reply.
 */
int handshake_call(struct wire *wire, struct reply **ret_reply, uint64_t timeout_ns);

#endif
