/* SPDX-License-Identifier: MIT */
/*
 * A nonblocking socket to a Redis server: it sends the bytes of commands and reads parsed replies.
 * A link (link.h) holds a wire, and reconnects after a failure. Only two calls block: wire_open(),
 * while it resolves the name, and wire_call(). One thread at a time uses a wire. wire.c parses
 * replies with the reader of hiredis, and no other file uses hiredis.
 */
#ifndef RELAY_WIRE_H
#define RELAY_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/address.h"
#include "relay/bytes.h"

struct wire;
struct reply; /* a reply of a server; reply_free() also frees its elements */

enum reply_type { REPLY_NIL, REPLY_ERROR, REPLY_TEXT, REPLY_INTEGER, REPLY_ARRAY };

/*
 * Begin to connect. Returns 0, -EHOSTUNREACH if the name is not known, -ECONNREFUSED if there is no
 * unix socket of this name, or another error of the kernel.
 */
int wire_open(struct wire **ret_wire, const struct address *address);
void wire_close(struct wire *wire); /* the wire may be NULL */

int wire_fd(const struct wire *wire);
bool wire_has_output(const struct wire *wire);

/* Returns the buffer for commands, which the next flush sends. */
struct bytes *wire_output(struct wire *wire);

/*
 * Send the wire's buffer. Returns 0, -ENOMEM if the buffer is incomplete, -EHOSTUNREACH if the
 * connection is lost, or the error of the connect, for example -ECONNREFUSED.
 */
int wire_flush(struct wire *wire);

/*
 * Read the received bytes. Returns 0, -EPROTO if the bytes do not follow Redis's protocol, or an
 * error of wire_flush().
 */
int wire_fill(struct wire *wire);

/*
 * Returns 1 and the next reply, which the caller frees; 0 if no reply is complete; -EPROTO or
 * -ENOMEM.
 */
int wire_next(struct wire *wire, struct reply **ret_reply);

/*
 * Send the buffer, and wait for one reply, which may be an error reply. Returns 0, -ETIMEDOUT, or
 * an error of wire_flush() or wire_next().
 */
int wire_call(struct wire *wire, struct reply **ret_reply, uint64_t timeout_ns);

/* Returns the time on CLOCK_MONOTONIC, for the timeouts of calls. */
uint64_t wire_now_ns(void);

void reply_free(struct reply *reply); /* the reply may be NULL */
enum reply_type reply_type(const struct reply *reply);
/* Returns the text of an error or a text reply, NUL-terminated, or "" for any other reply. */
const char *reply_text(const struct reply *reply);
size_t reply_len(const struct reply *reply);
/* Returns the value of an integer, or of a text that is an integer; otherwise 0. */
int64_t reply_integer(const struct reply *reply);
/* Returns the number of elements of an array, or 0 for any other reply. */
size_t reply_count(const struct reply *reply);
/* Returns an element of an array, or NULL behind its end. */
const struct reply *reply_at(const struct reply *reply, size_t index);
/* Returns the integer at an index of an array, or 0 behind its end. */
int64_t reply_integer_at(const struct reply *reply, size_t index);
bool reply_is(const struct reply *reply, size_t index,
              const char *text); /* returns whether the element at `index` is this text */

#endif
