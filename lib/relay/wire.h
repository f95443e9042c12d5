/* SPDX-License-Identifier: MIT */
/*
 * Declares a wire, a nonblocking socket to a Redis server. A wire sends the bytes of commands and
 * reads parsed replies. A link (link.h) holds a wire, and says when to reconnect after a failure.
 * Only two functions of wire.h block: wire_open(), while it resolves the server's name, and
 * wire_call(). Only one thread at a time uses a wire. In the relay, only wire.c uses hiredis.
 * wire.c uses only the reply parser of hiredis.
 */
#ifndef RELAY_WIRE_H
#define RELAY_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/address.h"
#include "relay/command_buffer.h"

struct wire;
struct reply; /* a reply of a server; reply_free() also frees its elements */

enum reply_type { REPLY_NIL, REPLY_ERROR, REPLY_TEXT, REPLY_INTEGER, REPLY_ARRAY };

/*
 * Begin to connect to a server. Returns 0, -EHOSTUNREACH if the name of the host is unknown,
 * -ECONNREFUSED if the unix socket does not exist, or another error of the kernel.
 */
int wire_open(struct wire **ret_wire, const struct address *address);
void wire_close(struct wire *wire); /* the argument `wire` may be NULL */

int wire_fd(const struct wire *wire);
bool wire_has_output(const struct wire *wire);

/* Returns the buffer for new commands. The next wire_flush() sends the contents of the buffer. */
struct bytes *wire_output(struct wire *wire);

/*
 * Send the bytes in the wire's buffer. Returns 0, -ENOMEM if an allocation for the buffer failed,
 * -EHOSTUNREACH if the connection is lost, or the error of the connect, for example -ECONNREFUSED.
 */
int wire_flush(struct wire *wire);

/*
 * Read the bytes that have arrived. Returns 0, -EPROTO if the bytes do not follow Redis's protocol,
 * or an error of wire_flush().
 */
int wire_fill(struct wire *wire);

/*
 * Parse the next reply, which the caller frees. Returns 1 and the reply, 0 if no complete reply has
 * arrived, -EPROTO or -ENOMEM.
 */
int wire_next(struct wire *wire, struct reply **ret_reply);

/*
 * Send the wire's buffer, and wait for one reply, which may be an error reply. Returns 0,
 * -ETIMEDOUT, or an error of wire_flush() or wire_next().
 */
int wire_call(struct wire *wire, struct reply **ret_reply, uint64_t timeout_ns);

/* Returns the time on CLOCK_MONOTONIC, for the timeouts of calls. */
uint64_t wire_now_ns(void);

void reply_free(struct reply *reply); /* the argument `reply` may be NULL */
enum reply_type reply_type(const struct reply *reply);
/* Returns the text of an error reply or a text reply, NUL-terminated, or "" for any other reply. */
const char *reply_text(const struct reply *reply);
size_t reply_len(const struct reply *reply);
/* Returns the number in an integer reply or in a text reply. For any other reply, returns 0. */
int64_t reply_integer(const struct reply *reply);
/* Returns the number of elements of an array reply, or 0 for any other reply. */
size_t reply_count(const struct reply *reply);
/* Returns element number `index` of an array reply, or NULL if there is no such element. */
const struct reply *reply_at(const struct reply *reply, size_t index);
/*
 * Returns the integer in element number `index` of an array reply, or 0 if there is no such
 * element.
 */
int64_t reply_integer_at(const struct reply *reply, size_t index);
/* Returns whether element number `index` of an array reply is the text `text`. */
bool reply_is(const struct reply *reply, size_t index, const char *text);

#endif
