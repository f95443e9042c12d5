/* SPDX-License-Identifier: MIT */
/* The names of a queue's keys and channels, and calls of its functions. Pure. */
#ifndef RELAY_KEYS_H
#define RELAY_KEYS_H

#include "relay/bytes.h"

#define KEYS_QUEUE_MAX 64
#define KEYS_NAME_BYTES 192
#define KEYS_SHARDS_MAX 64u

struct keys {
	char prefix[KEYS_QUEUE_MAX + 16]; /* "timerhub:{QUEUE}:" */
};

/* -EINVAL: no name for a queue. */
int keys_init(struct keys *keys, const char *queue);

/* The full name of a key, or of a channel. */
void keys_name(const struct keys *keys, char name[KEYS_NAME_BYTES], const char *part);

/* Returns the index of the server that has tasks of that id. */
uint32_t keys_shard(const char *id, uint32_t shards);

/* Begin a call of timerhub_FUNCTION with the keys named, blanks between; the arguments follow. */
void keys_call(const struct keys *keys, struct bytes *bytes, const char *function,
               const char *parts, unsigned arguments);

#endif
