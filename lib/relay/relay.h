/* SPDX-License-Identifier: MIT */
/*
 * struct timerhub_relay, an open queue over one or more servers, its shards; each call goes to the
 * task's shard. relay.c opens and closes, change.c changes, take.c delivers.
 */
#ifndef RELAY_RELAY_H
#define RELAY_RELAY_H

#include "base/fork_check.h"
#include "relay/shard_thread.h"
#include "relay/submissions.h"

struct timerhub_relay {
	struct shared shared;
	struct fork_check fork_check;
	uint64_t seed; /* random number, which is part of the ids that the relay makes */
	struct shard *shards;
	struct submissions submissions;
	char *url_file; /* path of the file with the servers' addresses, or NULL */

	/* The lock of `shared`, the relay's lock, protects the fields below. */
	uint64_t puts;   /* begun: makes ids and `call` unique */
	uint32_t turn;   /* index of the shard that the next take_at_once() asks first */
	uint32_t inside; /* number of threads inside timerhub_relay_take() */
	bool ended;      /* the stopped relay has no task left: timerhub_relay_take() fails */
};

/* ---- for the daemon timerhub-relay ---- */

/* Open a queue as timerhub_relay_open() does, with a watcher that learns the servers' errors. */
int relay_open(struct timerhub_relay **ret_relay, const char *queue,
               const struct timerhub_relay_config *config, const struct watcher *watcher);

/* ---- for the public calls, which do not hold the relay's lock ---- */

/* Makes each shard's thread do another pass. The caller holds the relay's lock. */
void relay_wake_shards(struct timerhub_relay *relay);

/* Ends reads of takes a second from now, answered or not. The caller holds the relay's lock. */
void relay_end_reads(struct timerhub_relay *relay);

/* Returns the shard that keeps the task with the id `id`. */
struct shard *relay_shard_of(struct timerhub_relay *relay, const char *id);

/* 0, -EINVAL for NULL, -EOWNERDEAD in a forked child. */
int relay_may_call(const struct timerhub_relay *relay);

#endif
