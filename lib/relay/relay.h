/* SPDX-License-Identifier: MIT */
/*
 * An open queue. relay.c has open and close. change.c has put, cancel, move, done and retry. take.c
 * delivers. A queue is spread over one or more servers, its shards. Each call goes to the shard
 * that has the task.
 */
#ifndef RELAY_RELAY_H
#define RELAY_RELAY_H

#include "journal/fork_check.h"
#include "relay/shard.h"

struct timerhub_relay {
	struct shared shared;
	struct fork_check fork_check;
	uint64_t seed; /* of ids that are made */
	struct shard *shards;

	/* Under the lock of `shared`. */
	uint64_t ids;    /* made so far */
	uint32_t turn;   /* the shard that the next take without waiting asks first */
	uint32_t inside; /* takers inside take */
	bool ended;      /* a take after stop found nothing prefetched; all later takes fail */
};

/* ---- for the daemon ---- */

/* As timerhub_relay_open(). */
int relay_open(struct timerhub_relay **ret_relay, const char *queue,
               const struct timerhub_relay_config *config, const struct watcher *watcher);

/* ---- for callers; the lock is not held ---- */

/* Returns the shard that has tasks of that id. */
struct shard *relay_shard_of(struct timerhub_relay *relay, const char *id);

/* Returns 0 if calls are allowed, or -EINVAL, or -EOWNERDEAD. */
int relay_may_call(const struct timerhub_relay *relay);

#endif
