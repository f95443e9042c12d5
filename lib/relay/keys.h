/* SPDX-License-Identifier: MIT */
/*
 * Makes the names of a queue's keys and channels, and begins calls of its functions. The functions
 * are pure.
 */
#ifndef RELAY_KEYS_H
#define RELAY_KEYS_H

#include "relay/bytes.h"

#define KEYS_QUEUE_MAX 64
#define KEYS_NAME_BYTES 192
#define KEYS_SHARDS_MAX 64u

struct keys {
	char prefix[KEYS_QUEUE_MAX + 16]; /* prefix of the key names, "timerhub:{QUEUE}:" */
};

/* Returns -EINVAL if the queue may not have this name. */
int keys_init(struct keys *keys, const char *queue);

/* Write the full name of a key or of a channel. */
void keys_name(const struct keys *keys, char name[KEYS_NAME_BYTES], const char *part);

/* Returns the index of the server that keeps the task of this id. */
uint32_t keys_shard(const char *id, uint32_t shards);

/*
 * Begin a call of timerhub_FUNCTION. The argument `names` lists the keys of the function, with
 * blanks between them. After this call the caller adds the function's arguments.
 */
void keys_call(const struct keys *keys, struct bytes *bytes, const char *function,
               const char *parts, unsigned arguments);

#endif
