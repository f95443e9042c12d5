/* SPDX-License-Identifier: MIT */
/* Greets the server on a new connection: password, database, functions loaded, queue made. */
#ifndef RELAY_GREET_H
#define RELAY_GREET_H

#include "keys.h"
#include "wire.h"

/* What the server says of the queue. */
struct greeting {
	uint64_t now_us; /* when it ran */
	uint64_t lease_us;
	uint64_t past_us;
	uint64_t shards;
};

/* Password and database. 0; an error of the network; -EACCES, -EINVAL … as of answer.h. */
int greet(struct wire *wire, const struct address *address, uint64_t timeout_ns);

/* Load the functions if the server has none, or older ones. */
int greet_load(struct wire *wire, uint64_t timeout_ns);

/* Make the queue if it is not there. */
int greet_create(struct wire *wire, const struct keys *keys, struct greeting *ret_greeting,
                 uint64_t timeout_ns);

/* Flush, and wait for a reply that is no error; an error's meaning else. */
int greet_call(struct wire *wire, struct reply **ret_reply, uint64_t timeout_ns);

#endif
