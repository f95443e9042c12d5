/* SPDX-License-Identifier: MIT */
/*
 * Encodes commands for Redis, as arrays of bulk strings, into a buffer that grows. If an allocation
 * fails, the functions of command_buffer.h set `failed` in the buffer. Only the sender of a buffer
 * checks `failed`, so a function that encodes a command need not check for errors. A buffer whose
 * `failed` is set must not be sent.
 */
#ifndef RELAY_COMMAND_BUFFER_H
#define RELAY_COMMAND_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
	char *data;
	size_t len;
	size_t capacity;
	bool failed; /* an allocation has failed, so the commands in the buffer are incomplete */
};

void bytes_fini(struct bytes *bytes);

/* Remove the first `count` bytes of the buffer. */
void bytes_consume(struct bytes *bytes, size_t count);

void bytes_add(struct bytes *bytes, const void *data, size_t len);

/*
 * Begin a command of `words` words. After bytes_command(), the caller adds each word by
 * bytes_word(), bytes_text() or bytes_number().
 */
void bytes_command(struct bytes *bytes, unsigned words);
void bytes_word(struct bytes *bytes, const void *word, size_t len);
void bytes_text(struct bytes *bytes, const char *text);
void bytes_number(struct bytes *bytes, uint64_t number);

#endif
