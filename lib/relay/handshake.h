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
 * Connects to the server of an address, or to the master that its Sentinels or its cluster name,
 * and stores that server's address in *ret_server, which may be NULL. A Sentinel that is of no use
 * moves to the end of the list. Returns 0, a network error, -EROFS if the server is a replica or
 * nobody knows a master, -EOPNOTSUPP if it is older than 7.0 or of another kind than the address
 * says, or else an errno of error_reply.h.
 */
int handshake_open(struct wire **ret_wire, struct address *address, struct address *ret_server,
                   uint64_t timeout_ns);

/*
 * Asks a Sentinel for the master. The first of the two replies names the server, and the second has
 * the epoch of the Sentinel's configuration, or 0 if it does not say: of two Sentinels the one with
 * the higher epoch is right.
 */
void handshake_ask_master(struct wire *wire, const struct address *address);
int handshake_read_master(const struct reply *reply, struct address *server);
uint64_t handshake_read_epoch(const struct reply *reply);

/* Stores this version in `*ret_version`, or 0 if the server does not have its functions. */
int handshake_version(struct wire *wire, uint64_t *ret_version, uint64_t timeout_ns);

/*
 * Loads the functions of this version if the server lacks them, and then, if they are missing too,
 * those with plain names for other languages. Other versions stay loaded, since their clients may
 * be at work. If `replaces` is true, older functions with plain names are replaced in any case.
 */
int handshake_load(struct wire *wire, bool replaces, uint64_t timeout_ns);

/*
 * Lets the server refuse, until `until_us`, the changes of this holder that have an epoch below
 * `epoch`.
 */
int handshake_fence(struct wire *wire, const struct keys *keys, const char *holder, uint64_t epoch,
                    uint64_t until_us, uint64_t timeout_ns);

/* Checks that the server lets this user call WAIT. */
int handshake_wait(struct wire *wire, uint64_t timeout_ns);

/*
 * Creates the queue if it does not exist. Returns -EEXIST if it was created with another number of
 * servers, or with another index of this server.
 */
int handshake_create(struct wire *wire, const struct keys *keys, uint32_t shards, uint32_t shard,
                     struct handshake *ret_handshake, uint64_t timeout_ns);

/*
 * Sends what is in the wire's buffer, and waits for one reply. Returns 0, a network error, or the
 * errno of an error reply.
 */
int handshake_call(struct wire *wire, struct reply **ret_reply, uint64_t timeout_ns);

#endif
