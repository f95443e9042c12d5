/* SPDX-License-Identifier: MIT */
/*
 * Finds the server and greets it on a new connection: password, database, what kind of server it
 * is, functions loaded, queue made. Blocks up to `timeout_ns` for each answer.
 */
#ifndef RELAY_GREET_H
#define RELAY_GREET_H

#include "relay/keys.h"
#include "relay/wire.h"

/* What the server says of the queue. */
struct greeting {
	uint64_t now_us; /* when it ran */
	uint64_t lease_us;
	uint64_t past_us;
};

/*
 * Connect to a master, by its address or by what its Sentinels say; `ret_server`, which may be
 * NULL, is where that is. 0; an error of the network; -EROFS: it is a replica, or no Sentinel
 * knows a master; -EOPNOTSUPP: before 7.0, a node of a cluster, or itself a Sentinel; -EACCES,
 * -EINVAL … as of answer.h.
 */
int greet_open(struct wire **ret_wire, const struct address *address, struct address *ret_server,
               uint64_t timeout_ns);

/* The version of the functions there; 0: there are none. */
int greet_version(struct wire *wire, uint64_t *ret_version, uint64_t timeout_ns);

/* Load the functions if the server has none, or older ones. */
int greet_load(struct wire *wire, uint64_t timeout_ns);

/* May WAIT be called? */
int greet_wait(struct wire *wire, uint64_t timeout_ns);

/*
 * Make the queue if it is not there. -EEXIST: it is there, spread over another number of servers,
 * or this is another one of them.
 */
int greet_create(struct wire *wire, const struct keys *keys, uint32_t shards, uint32_t shard,
                 struct greeting *ret_greeting, uint64_t timeout_ns);

/* Flush, and wait for a reply that is no error; an error's meaning else. */
int greet_call(struct wire *wire, struct reply **ret_reply, uint64_t timeout_ns);

#endif
