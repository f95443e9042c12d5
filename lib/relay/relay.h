/* SPDX-License-Identifier: MIT */
/*
 * struct timerhub_relay is an open queue. Its tasks are spread over one or more servers, the
 * shards, and each call goes to its task's shard. relay.c opens and closes, change.c changes tasks,
 * and take.c delivers them.
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

	/* The fields from here on are protected by shared.lock. */
	uint64_t puts;   /* how many puts were begun; makes ids and `call` unique */
	uint32_t turn;   /* index of the shard that the next take_at_once() asks first */
	uint32_t inside; /* number of threads inside timerhub_relay_take() */
	bool ended;      /* the stopped relay has no task left: timerhub_relay_take() fails */
};

/* ---- for the daemon timerhub-relay ---- */

/*
 * Opens a queue as timerhub_relay_open() does, with a watcher that is told of the servers' errors.
 */
int relay_open(struct timerhub_relay **ret_relay, const char *queue,
               const struct timerhub_relay_config *config, const struct watcher *watcher);

/* ---- for the public calls, which do not hold the relay's lock ---- */

/* Makes the threads of all shards look for work again. Called with the relay's lock held. */
void relay_wake_shards(struct timerhub_relay *relay);

/*
 * Makes threads in timerhub_relay_take() wait for at most one more second for servers that do not
 * answer. Called with the relay's lock held.
 */
void relay_end_reads(struct timerhub_relay *relay);

/* Returns the shard (the server and its thread) that has the task with this id. */
struct shard *relay_shard_of(struct timerhub_relay *relay, const char *id);

/* Returns 0 if calls may be made, -EINVAL if `relay` is NULL, or -EOWNERDEAD in a forked child. */
int relay_may_call(const struct timerhub_relay *relay);

#endif
