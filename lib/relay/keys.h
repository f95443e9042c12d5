/* SPDX-License-Identifier: MIT */
/* Names of a queue's keys and channels, and the beginning of calls with them. Pure. */
#ifndef RELAY_KEYS_H
#define RELAY_KEYS_H

#include "relay/command_buffer.h"

#define KEYS_QUEUE_MAX 64
#define KEYS_NAME_BYTES 192
#define KEYS_SHARDS_MAX 64u

struct keys {
	char prefix[KEYS_QUEUE_MAX + 16]; /* prefix of the key names, "timerhub:{QUEUE}:" */
	uint16_t slot;                    /* slot of all keys of the queue in a Redis cluster */
};

/* Prepares the names of a queue's keys. Returns -EINVAL if `queue` is not a valid name. */
int keys_init(struct keys *keys, const char *queue);

/*
 * Writes the full name of one of the queue's keys or channels, for example of "ready" or "state".
 */
void keys_name(const struct keys *keys, char name[KEYS_NAME_BYTES], const char *part);

/* Returns the index of the server that keeps the task with this id. */
uint32_t keys_shard(const char *id, uint32_t shards);

/*
 * Begins a call of a function of timerhub.lua: "put" becomes FCALL timerhub4_put. `parts` lists the
 * keys without prefix, as "due task state". The caller then adds `arguments` arguments.
 */
void keys_call(const struct keys *keys, struct bytes *bytes, const char *function,
               const char *parts, unsigned arguments);

#endif
