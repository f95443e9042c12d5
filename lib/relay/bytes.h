/* SPDX-License-Identifier: MIT */
/*
 * Encodes commands for Redis, as arrays of bulk strings, into a buffer that grows. If an allocation
 * fails, the buffer sets `failed`. Only the sender of the buffer checks `failed`, so the encoders
 * need not check. A buffer that has failed must not be sent.
 */
#ifndef RELAY_BYTES_H
#define RELAY_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
	char *data;
	size_t len;
	size_t capacity;
	bool failed; /* an allocation failed, so the bytes are incomplete */
};

void bytes_fini(struct bytes *bytes);

/* Remove the first `count` bytes of the buffer. */
void bytes_consume(struct bytes *bytes, size_t count);

void bytes_add(struct bytes *bytes, const void *data, size_t len);

/* Begin a command of `words` words. The caller then adds each word. */
void bytes_command(struct bytes *bytes, unsigned words);
void bytes_word(struct bytes *bytes, const void *word, size_t len);
void bytes_text(struct bytes *bytes, const char *text);
void bytes_number(struct bytes *bytes, uint64_t number);

#endif
