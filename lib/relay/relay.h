/* SPDX-License-Identifier: MIT */
/*
 * A queue that is open: what its calls need of each other. relay.c opens and closes, change.c puts,
 * cancels, moves, acknowledges and gives back, take.c delivers. A queue is spread over one or more
 * servers, its shards; a call asks the one that has the task.
 */
#ifndef RELAY_RELAY_H
#define RELAY_RELAY_H

#include "journal/life.h"
#include "relay/shard.h"

struct timerhub_relay {
	struct shared shared;
	struct life life;
	uint64_t seed; /* of ids that are made */
	struct shard *shards;

	/* Under the lock of `shared`. */
	uint64_t ids;    /* made so far */
	uint32_t turn;   /* the shard that the next take without waiting asks first */
	uint32_t inside; /* takers inside take */
	bool ended;      /* a stopped take has found the hand empty: none takes after it */
};

/* ---- for the daemon ---- */

/* As timerhub_relay_open(). */
int relay_open(struct timerhub_relay **ret_relay, const char *queue,
               const struct timerhub_relay_config *config, const struct watcher *watcher);

/* ---- for callers; the lock is not held ---- */

/* The one that has a task of that id. */
struct shard *relay_shard_of(struct timerhub_relay *relay, const char *id);

/* -EINVAL, -EOWNERDEAD, or 0: it may be called. */
int relay_check(const struct timerhub_relay *relay);

#endif
