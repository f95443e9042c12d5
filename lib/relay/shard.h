/* SPDX-License-Identifier: MIT */
/*
 * A shard: one server, the four connections that its thread has there, and what they need. Only the
 * shard's thread calls these functions once it runs.
 */
#ifndef RELAY_SHARD_H
#define RELAY_SHARD_H

#include "relay/mailbox.h"
#include "relay/pipeline.h"
#include "relay/scheduler.h"
#include "relay/sentinel_watch.h"
#include "relay/takers_connection.h"

/*
 * The request by which a take that must not wait long asks whether a lease still holds. It lies
 * beside the shard because its reply may come after the take has returned. Protected by the relay's
 * lock.
 */
struct brief_touch {
	struct request request; /* `finished` is 1 if no reply is awaited */
	bool is_awaited;        /* a take waits for the reply, or reads it */
	char id[TIMERHUB_RELAY_ID_BYTES];
	char entry[TIMERHUB_RELAY_DELIVERY_BYTES];
};

struct shard {
	struct shared *shared;
	struct client client;
	struct mailbox mailbox;
	struct brief_touch brief_touch;
	struct pipeline pipeline;
	struct takers_connection takers;
	struct scheduler scheduler;
	struct sentinel_watch watch;
	struct sleeper *sleeper; /* the sleeper of the thread, or NULL if not open */
	bool serves;             /* copy of shared.serves, which callers change */
	pthread_t thread;
	bool has_thread;
	/*
	 * State of the server for timerhub_relay_open(): 0 if connected, SHARD_UNTRIED, or the
	 * error of the last attempt to connect. The relay's lock protects it.
	 */
	int told;
};

#define SHARD_UNTRIED 1

/*
 * Initializes a shard, the connections to one server. The caller has already set `keys` and `shard`
 * in shard->client. Processes pass different seeds, so that they do not reconnect all at once.
 */
void shard_init(struct shard *shard, struct shared *shared, const struct address *address,
                uint64_t seed);

/*
 * Closes a shard's connections, and the descriptors on which its thread slept. That thread has
 * ended, or was never started.
 */
void shard_fini(struct shard *shard);

/*
 * In a forked child, closes a shard's descriptors and frees nothing, because the shard's thread in
 * the parent may have been changing the memory during the fork.
 */
void shard_leave(struct shard *shard);

/*
 * Closes the connection for commands, and with it the one for wake-up messages, and sets when to
 * connect again.
 */
void shard_lose_commands(struct shard *shard, int why, uint64_t now_ns);

/* Closes the connection that reads tasks. Tasks that may be lost with it will be read again. */
void shard_lose_takers(struct shard *shard, int why, uint64_t now_ns);

/*
 * Closes the connection that reads tasks and the one for wake-up messages, each only if its next
 * reply is overdue.
 */
void shard_lose_overdue(struct shard *shard, uint64_t now_ns);

/* Sends what is buffered on all connections. Returns false if one of them was lost. */
bool shard_flush(struct shard *shard);

/* Sleeps until `until_ns`, or until a connection is readable, and then reads from all that are. */
void shard_wait_and_read(struct shard *shard, uint64_t until_ns);

#endif
