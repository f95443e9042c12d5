/* SPDX-License-Identifier: MIT */
/*
 * Commands as arrays of bulk strings, in a buffer that grows. A failed allocation sets `failed`,
 * which only the sender checks: such a buffer must not be sent.
 */
#ifndef RELAY_COMMAND_BUFFER_H
#define RELAY_COMMAND_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
	char *room;      /* the allocation */
	size_t capacity; /* its size */
	char *data;      /* the bytes that are not consumed yet, in the allocation */
	size_t len;
	bool failed; /* an allocation has failed, so the commands in the buffer are incomplete */
	bool asking; /* an ASKING is put before each command (address.h) */
};

void bytes_fini(struct bytes *bytes);

/* Removes the first `count` bytes of the buffer, which have been sent. */
void bytes_consume(struct bytes *bytes, size_t count);

void bytes_add(struct bytes *bytes, const void *data, size_t len);

/*
 * Begins a command of `words` words. The caller then adds exactly that many by bytes_word(),
 * bytes_text(), bytes_number() or bytes_joined().
 */
void bytes_command(struct bytes *bytes, unsigned words);
void bytes_word(struct bytes *bytes, const void *word, size_t len);
void bytes_text(struct bytes *bytes, const char *text);
void bytes_number(struct bytes *bytes, uint64_t number);

/* Adds one word, which is `first` followed by the `second_len` bytes of `second`. */
void bytes_joined(struct bytes *bytes, const char *first, const void *second, size_t second_len);

#endif
